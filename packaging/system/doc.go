// Package system owns the repository that a bundle carries for one distribution,
// release and architecture: from the names of packages to packages with addresses
// and digests, and from these to the repository's own files.
//
//	Pin       asks the distribution's repositories; what it finds goes into a lock
//	Metadata  writes Packages and Release, or repodata, of what a lock has
//
// What either family of formats asks for is packaging/apt's and packaging/rpm's business.
//
// It may import packaging, packaging/apt, packaging/rpm, versions and manifest.
package system

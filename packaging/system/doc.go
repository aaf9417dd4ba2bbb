// Package system builds the package repository in a bundle for one distribution, release
// and architecture. It resolves package names to packages with addresses and digests, and
// generates the repository's metadata.
//
//	Pin       resolves packages in the distribution's repositories, for a lock file
//	Metadata  generates Packages and Release, or repodata, from a lock file
//
// The formats are implemented in packaging/apt and packaging/rpm.
//
// It may import packaging, packaging/apt, packaging/rpm, versions and manifest.
package system

// Package apt reads and writes apt repositories: their configuration, signatures and
// indices, the version that apt would choose, and an offline repository of selected
// packages.
//
//	sources     sources.list and .sources, from a folder or from a text
//	release     InRelease, or Release and Release.gpg: signature, dates, suite
//	index       Packages, in any compression, verified with the digest in the release
//	policy      the candidate version, by pin priority
//	Archive     all of it for one architecture: a packaging.Universe
//	Repository  Packages and Release of selected packages, for the bundle
//
// A repository without a valid signature is never used. The package contains no host
// names of distributions, and accesses the network only through a Web.
//
// It may import packaging, versions and manifest.
package apt

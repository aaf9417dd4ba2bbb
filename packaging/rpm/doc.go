// Package rpm reads and verifies the metadata of yum and dnf repositories, converts it to
// a packaging.Universe, and writes a repository of selected packages.
//
//	.repo files   ParseRepositories, ReadRepositories   configured repositories
//	repomd.xml    Read                                  signature, checksums of other files
//	primary       Read                                  packages; filelists only for paths that primary lacks
//	              Metadata.Universe                     candidates and base packages
//	rpm file      Check                                 signature and digests
//	repodata      Write                                 metadata of selected packages
//
// All input except .repo files is untrusted until its checksum is verified: sizes are
// limited, XML entities cannot be defined, recursion is limited.
//
// Libraries are used for OpenPGP, versions and xz (with a limit for its dictionary). The
// header of an rpm file is parsed here, because the available libraries trust the lengths
// in it. XML is parsed with encoding/xml, except package elements: a large distribution
// has several hundred megabytes of these, and a specialized scanner is many times faster.
// Tests compare it with encoding/xml.
//
// It may import packaging, versions and manifest.
package rpm

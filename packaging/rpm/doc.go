// Package rpm reads what yum and dnf repositories say of their packages, checks
// it, and makes a packaging.Universe of it; and it writes such a repository of
// some packages.
//
//	.repo files   ParseRepositories, ReadRepositories   which repositories there are
//	repomd.xml    Read                                  signature, checksums of the rest
//	primary       Read                                  packages; filelists only for paths that primary lacks
//	              Metadata.Universe                     which of them are candidates, what is base
//	rpm file      Check                                 its signature and digests
//	repodata      Write                                 what dnf and yum need of some packages
//
// All of it but the repositories' own files is hostile until its checksum was
// seen: sizes are bounded, XML has no entities of its own, nothing recurses
// without a limit.
//
// Of libraries there are one for OpenPGP, one for versions and one for xz, which
// can bound its dictionary. The header of an rpm file is read here, since the
// libraries for it take the lengths in it at their word. XML is encoding/xml's, but
// for the tokens of a package's element: a large distribution has some hundred
// megabytes of these, and what is written as usual is read here in a fraction of
// the time, held against encoding/xml by tests.
//
// It may import packaging, versions and manifest.
package rpm

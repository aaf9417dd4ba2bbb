// Package serve is a read-only registry that serves a bundle: images under their names at the
// site, the files of artifacts, and repositories of packages, signed if there is a key. Nothing
// is unpacked. Each request reads the archive in place and hashes the content. The end of a
// response is sent only after the digest of the blob was verified. Therefore a damaged blob ends
// in an error or a closed connection, and is never served completely. Ranges of a blob that was
// read before are verified with digests of its parts. Limits prevent idle clients, or many
// requests of one client, from blocking others.
//
// It may import registry, bundle, packaging, versions and manifest.
package serve

// Package serve answers out of a bundle what a registry answers, and reads only:
// the images under the names that they have at a site, the files of the
// artifacts, and the repositories of packages, signed with a key where one is
// given. Nothing is unpacked. Each request reads the archive in place and hashes
// what it reads; the end of an answer is held back until the blob was found to be
// what its digest says, so a damaged one ends in an error or a broken connection,
// and never whole. Ranges of a blob that was read before are compared with digests
// of its parts. Limits keep clients that are idle, or many, from holding up others.
//
// It may import registry, bundle, packaging, versions and manifest.
package serve

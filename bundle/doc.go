// Package bundle owns what a bundle is: a lock turned into one archive with
// every byte that the lock names, and read back with every byte checked.
//
//	Resolve  a config becomes a lock with the pins that exist already
//	Pin      a resolved lock gains sizes and the digests still missing (network)
//	Drift    what a resolved lock asks for that a pinned one does not say
//	Build    a pinned lock becomes an archive
//	Open     an archive becomes a Bundle, its head verified, its closure complete
//	Verify   every byte of an archive against its digest
//	Complete a delta and its base become the whole archive
//	Copy     a bundle in a registry becomes an archive, see bundle/transfer
//
// What a bundle holds is one OCI root index. Its children are manifests and
// indexes only, so that any OCI registry can hold a whole bundle: one artifact
// manifest for the lock, the config and the summary; one for each file or
// archive of files; and each image's own index or manifest, byte for byte as
// published.
//
// The bytes of the archive are bundle/archive's, getting artifacts is
// bundle/fetch's, bills of materials bundle/sbom's, the description of deltas
// bundle/delta's. bundle imports these, versions, manifest and durable.
package bundle

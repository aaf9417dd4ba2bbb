// Package bundle resolves, builds, opens and verifies bundles. A bundle is one archive that
// contains every byte that a lock pins; every byte is checked against its digest when it is
// read.
//
//	Resolve  resolves a config to a lock and adopts existing pins
//	Pin      adds sizes and missing digests to a resolved lock (network)
//	Drift    reports where a config and its pinned lock differ
//	Build    writes the archive of a pinned lock
//	Open     opens an archive: verified head, complete set of blobs
//	Verify   checks every byte of an archive against its digest
//	Complete joins a delta and its base to a complete archive
//	Copy     writes the archive of a bundle in a registry, see bundle/transfer
//
// A bundle's root is one OCI index. Its children are manifests and indexes only, so that
// any OCI registry can store a complete bundle. They are: one artifact manifest for the
// lock, the config and the summary; one for each file or archive of files; and each image's
// own index or manifest, byte for byte as published.
//
// bundle/archive owns the bytes of the archive, bundle/fetch downloads artifacts,
// bundle/sbom writes bills of materials, and bundle/delta describes deltas. bundle imports
// these, versions, manifest and durable.
package bundle

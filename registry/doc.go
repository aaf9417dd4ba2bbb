// Package registry transfers images into a container registry. It maps upstream names to names
// at a site (Mapper). It finds images of a bundle that a registry lacks (Compare), and sends them
// directly from the archive (Fill). It lists the contents of a registry (Survey, Find, Open).
// For nodes without a registry it provides images as a stream (Layout).
//
// Nothing is unpacked: a blob is read from its place in the archive, hashed and sent. Blobs are
// sent first, then manifests, then indexes, then tags: a tag exists only after everything that
// it refers to. Content that the registry already has is not sent, so that an interrupted Fill
// continues where it stopped. Manifests and indexes are sent as published, so that digests at
// the site equal upstream's. If a registry rejects an index because platforms are missing,
// Options.Narrow sends an index without them; FillResult.Narrowed has its new digest.
//
// It may import bundle, packaging, versions and manifest.
package registry

// Package registry owns names and transfer into a container registry: which
// name an image has at a site (Mapper), which of a bundle's images a registry
// lacks (Missing, Compare), sending those straight from the archive (Seed, Fill),
// what a registry has (Survey, Find, Open), and images as a stream for a node that
// has no registry to ask (Layout).
//
// Nothing is unpacked: a blob is read from its place in the archive, hashed on
// the way, and sent. Blobs go first, then manifests, then indexes, then tags:
// whoever sees a tag finds everything behind it. What a registry holds already
// is not sent, so an interrupted Seed goes on where it stopped. Manifests and
// indexes are sent as published, so digests at the site are upstream's; an index
// that a registry refuses for its gaps is narrowed where Options.Narrow says so,
// and who needs its new digest is told.
//
// It may import bundle, packaging, versions and manifest.
package registry

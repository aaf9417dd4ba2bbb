// Package delta describes deltas: archives with only a part of their bundle. Delta is the
// description in the archive, Savings.Includes decides which blobs a delta includes, and
// OmittedBlobs tracks the blobs that it leaves out and where they are read from. The package
// identifies blobs by their digests; it knows neither archives nor bundles.
package delta

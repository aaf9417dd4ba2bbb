// Package versions owns the matrix: which version of which component goes with
// which Kubernetes, where it comes from, and its digest.
//
// The data stands in data/*.yaml, one file per component, written by
// cmd/versionsgen and embedded. [Load] reads it, lays overlays of the same form
// over it, and gives a [Catalog]; [Catalog.Resolve] turns a cluster config into
// a lock that names every file and image, without asking the network.
//
// versions imports manifest and nothing else of this module.
package versions

// Package components builds the programs that the lab runs: real ones, from
// their Go modules, at the versions of one table.
//
// Each row of components.yaml has a folder of its name with a go.mod and a
// go.sum, so that what it is built from is pinned and checked by Go's checksum
// database. Another version, of Kubernetes or of alternatives.yaml, has its module
// files in the cache: upstream's go.mod decides them. What is built goes into a cache outside the checkout and is built
// again only when its row, its modules or the toolchain change.
//
// The package imports nothing of the module; only the lab imports it.
package components

// Package plan describes work: fragments joined into one graph of steps on hosts. It does no
// I/O: the same cluster, lock and targets always give the same graph, so a plan can be
// printed, compared and checked before any host is changed.
//
// It may import steps and manifest.
package plan

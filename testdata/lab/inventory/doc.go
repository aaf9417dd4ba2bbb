// Package inventory writes down what a host is, and tells how two of these
// differ: what a cluster left behind that was made and deleted between them.
//
// What may differ stands in exclusions.yaml, each with its reason.
//
// It imports nothing of this module.
package inventory

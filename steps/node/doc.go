// Package node makes a machine ready to be a node: names that resolve, kernel
// modules, kernel settings.
//
// It may import steps, steps/op and manifest.
package node

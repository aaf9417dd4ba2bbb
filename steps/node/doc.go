// Package node makes a machine ready to be a node: names that resolve, kernel
// modules, kernel settings.
//
// It may import steps, steps/controlplane, steps/op and manifest.
package node

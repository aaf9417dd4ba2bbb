// Package network installs the pod network. The manifest is upstream's own, out
// of the bundle; what the config says is put in by editing its tree.
//
// It may import steps, steps/op, steps/kubectl and manifest.
package network

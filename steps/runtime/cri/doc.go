// Package cri holds what every container runtime of a node has beside it: crictl, the
// CNI plugins, and where images come from.
//
// It may import steps, steps/op, registry and manifest.
package cri

// Package cri holds what nodes need with any container runtime: crictl, the CNI plugins, and
// the registries that images are pulled from.
//
// It may import steps, steps/op, registry and manifest.
package cri

package node

import "github.com/mensylisir/kubexm/manifest"

// Modules are the kernel modules that the nodes of a cluster need.
func Modules(c *manifest.Cluster) []string { return modules(c) }

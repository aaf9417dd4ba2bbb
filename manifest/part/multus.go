package part

import "github.com/mensylisir/kubexm/manifest"

// Multus is the name of the program that gives pods additional interfaces, and of its image.
const Multus = "multus"

// HasMultus reports whether pods of a cluster can have additional interfaces.
func HasMultus(c *manifest.Cluster) bool { return c.Spec.Network.Multus.Enabled }

// Package node makes a machine ready to be a node: names that resolve, kernel
// modules, kernel settings, no swap, no firewall, SELinux permissive, the time. The
// resources that only this takes are here.
//
// It may import steps, steps/controlplane, steps/op, steps/packages, steps/runner and
// manifest.
package node

// Package node prepares a host to be a node: names in /etc/hosts, kernel modules, kernel
// settings, no swap, no firewall, SELinux permissive, time synchronisation. It also defines
// the resources that only these steps use.
//
// It may import steps, steps/controlplane, steps/op, steps/packages, steps/runner and
// manifest.
package node

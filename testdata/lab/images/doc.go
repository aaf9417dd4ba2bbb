// Package images makes container images of the lab's components, in the names
// and with the tags that upstream publishes them by.
//
// Each has its program on a layer of its own. What needs iptables or a shell
// has a second layer, the same for all, with those of the hosts' own Debian.
// Load balancers are programs of Debian's packages.
//
// The package is for the lab alone.
package images

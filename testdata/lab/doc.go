// Package lab is a site without a way out, on one machine: hosts that boot
// systemd and take ssh, in network namespaces on a bridge that leads nowhere,
// and a host to run kubexm from.
//
// A lab goes up with Up and away with Down, which leaves nothing behind: no
// process, mount, namespace, control group, loop device or changed kernel
// setting. Labs of different names stand side by side. What tries to leave a
// lab ends at its gateway and is written down; Egress tells of it.
//
// It needs Linux, root, and programs that README.md lists. Tests begin with
// Start, which skips where those are missing.
//
// The package is for this module's tests and for `make lab-up`; it may import
// any package of the module, and none but tests may import it.
package lab

// Package upstream is an internet of one process: a server on the loopback
// address that stands in for every host a lock names.
//
// For the artifacts of a lock it serves content at the real addresses' layout:
//
//   - https://dl.k8s.io/release/v1.32.2/bin/linux/amd64/kubelet is at
//     /dl.k8s.io/release/v1.32.2/bin/linux/amd64/kubelet, with the digest file
//     beside it that upstream publishes;
//   - registry.k8s.io/pause:3.10 is the repository registry.k8s.io/pause of the
//     registry at /v2/.
//
// A Folder serves real files below a host's name, such as a mirror of packages or a
// repository that a Signer wrote.
//
// Everything else it serves is a stand-in: made from its own name, the right shape
// and of a plausible size, and not the program it is named after. A stand-in
// for an executable says so when it is run. Nothing trusts them by a switch:
// their digests come in through an overlay of the version matrix, as a
// person's own builds do, and every check stays on.
//
// The same lock gives the same bytes on every machine and with every release
// of Go: what is compressed is compressed with stored blocks only, and no
// content is kept in memory or on disk.
//
// The package is for this module's tests and for `make upstream`; it may
// import any package of the module, and none but tests may import it.
package upstream

// Package etcd runs the cluster's store as a service of the etcd hosts: the
// binaries of the bundle, a systemd unit, and TLS on both sides from a CA of the
// cluster's own in the workdir. It also gives the masters what their API servers
// reach a store with, this one or one that stands already, and looks at the latter
// before anything changes. Its etcdctl serves members that kubeadm runs, too.
//
// It may import steps, steps/op, steps/pki, steps/connector and manifest.
package etcd

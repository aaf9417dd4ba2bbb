// Package etcd runs the cluster's etcd as a systemd service on the etcd hosts: the binaries
// of the bundle, a unit, and mutual TLS with a CA of the cluster in the workdir. It also
// installs the client certificates of the API servers, for this etcd or an existing one,
// and checks an existing etcd before anything is changed. Its Client runs etcdctl for
// members that kubeadm runs, too.
//
// It may import steps, steps/op, steps/pki, steps/connector and manifest.
package etcd

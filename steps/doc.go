// Package steps will own what is done on one host: the contract of a step (a
// check that only reads, the change, the way back), the connection to a host, and
// one folder per domain (containerd, etcd, kubeadm and so on). So far it holds
// this comment only: nothing of it is built.
//
// It may import registry, bundle, packaging, versions and manifest. A step never
// downloads: its bytes come from a bundle.
package steps

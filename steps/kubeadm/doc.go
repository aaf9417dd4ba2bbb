// Package kubeadm installs and removes Kubernetes with kubeadm: its binaries and the
// kubelet's unit, the first control plane, the join of masters and workers, and the reset.
//
// It may import steps, steps/controlplane, steps/etcd, steps/kubectl, steps/op, steps/pki and manifest.
package kubeadm

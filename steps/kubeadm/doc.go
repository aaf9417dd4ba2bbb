// Package kubeadm brings up Kubernetes with kubeadm: its binaries and the
// kubelet's unit, the first control plane, masters and workers that join, and the way back.
//
// It may import steps, steps/controlplane, steps/etcd, steps/kubectl, steps/op, steps/pki and manifest.
package kubeadm

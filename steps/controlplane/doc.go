// Package controlplane holds what the two ways of running a control plane share, kubeadm
// and systemd's services: the flags and documents of its components, the keys that
// Secrets are encrypted with, the marks of a master that is complete, the modes of files,
// and the clean-up of a host.
//
// It may import steps, steps/kubectl, steps/op, steps/pki and manifest.
package controlplane

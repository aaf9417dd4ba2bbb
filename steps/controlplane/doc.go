// Package controlplane holds what is independent of how a control plane runs, by kubeadm or
// as systemd services: flags and configuration of its components, the encryption of
// Secrets, the marks of a complete master, file modes, and the clean-up of a host.
//
// It may import steps, steps/kubectl, steps/op, steps/pki and manifest.
package controlplane

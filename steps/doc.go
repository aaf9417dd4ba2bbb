// Package steps is the contract between the engine and the small things that
// kubexm knows how to do to one host: a check that only reads, the change, and
// the way back. The domains (containerd, kubeadm and so on) are its sub-folders.
//
// It may import registry, bundle, packaging, versions and manifest. A step never
// downloads: its bytes come from a bundle.
package steps

// Package kubernetes acts on a running cluster through kubectl on the first
// master: manifests, nodes, waits, the record of what was applied, and the
// administrator's kubeconfig.
//
// It may import steps, steps/op, steps/kubeadm and manifest.
package kubernetes

// Package cluster acts on a running cluster through kubectl on the first
// master: nodes, their certificates, CoreDNS, the record of what was applied, and
// the administrator's kubeconfig.
//
// It may import steps, steps/controlplane, steps/kubectl, steps/op and manifest.
package cluster

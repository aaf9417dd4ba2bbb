// Package cluster has the steps that change a running cluster through kubectl on a
// master: nodes, their certificates, CoreDNS, the cluster record and the administrator's
// kubeconfig.
//
// It may import steps, steps/controlplane, steps/kubectl, steps/op and manifest.
package cluster

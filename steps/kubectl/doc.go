// Package kubectl runs kubectl on a master with the administrator's kubeconfig: single
// commands, the objects of a manifest, and waits until workloads are ready.
//
// It may import steps, steps/op and manifest.
package kubectl

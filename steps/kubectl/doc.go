// Package kubectl speaks to a running cluster through kubectl on a master, with the
// administrator's rights: one command, the objects of a manifest, and the wait until
// workloads are what their manifest asks for.
//
// It may import steps, steps/op and manifest.
package kubectl

// Package gate has the steps that wait between the parts of a change: for API servers, etcd,
// a node, workloads. A gate changes nothing. It waits until its condition is met, reports
// what it waits for, and fails with what is missing after its timeout. A resumed run checks
// the gates again that an earlier run has passed.
//
// It may import steps, steps/controlplane, steps/etcd, steps/kubectl, steps/op and manifest.
package gate

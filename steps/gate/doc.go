// Package gate holds the waits that stand between the parts of a change: of API servers,
// of the store, of a node, of workloads. A gate only looks. It waits until what it asks
// for is so, says what it waits for, and ends with what is missing when its patience is
// over. One that has been passed is asked again by every run that goes on.
//
// It may import steps, steps/controlplane, steps/etcd, steps/kubectl, steps/op and manifest.
package gate

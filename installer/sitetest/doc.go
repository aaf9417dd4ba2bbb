// Package sitetest owns sites in memory that whole runs are tried on: every host of
// a config simulated, the cluster that kubeadm makes on them, the registry, and a
// bundle that holds what the plans ask for. It tells all that a run did to the
// hosts, as lines that do not change from run to run.
//
// It may import installer, steps, registry and their simulated parts. Only tests
// import it, and what reckons a scenario's effect.
package sitetest

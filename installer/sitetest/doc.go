// Package sitetest provides sites in memory on which tests execute complete runs: every host
// of a config is simulated, with the cluster that kubeadm creates on them, the registry, and a
// bundle with everything that the plans need. It reports everything that a run did to the
// hosts, as lines that are the same for every run.
//
// It may import installer, steps, registry and their simulated parts. Only tests import it,
// and the program that computes a scenario's effect.
package sitetest

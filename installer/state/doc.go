// Package state reads the records of a cluster: the cluster record, its copy on this machine,
// and the hosts that deletions skipped. It compares a config with them, and returns what an
// installation would harm and what a deletion has to remove.
//
// Exists is the only reader of the cluster record, and documents in which order it trusts the
// sources: the cluster, the copies on its masters, the copy in the cluster's folder. The
// package changes no host.
//
// It may import steps and the domains that know a cluster's marks on hosts, and manifest.
package state

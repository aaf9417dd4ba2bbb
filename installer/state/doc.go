// Package state reads what is remembered of a cluster: the cluster's own record, the
// copy of it on this machine, and what deletions left behind. It holds a config
// against them, and says what an installation would harm and what a deletion has to
// take away.
//
// Exists is the one reader of a cluster's record, and says in which order of trust it
// reads: the cluster, the copies on its masters, the copy in the cluster's folder. It
// changes no host.
//
// It may import steps and the domains that know a cluster's marks on hosts, and manifest.
package state

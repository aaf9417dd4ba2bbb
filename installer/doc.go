// Package installer owns one run: the cluster's folder on this machine, the bundle, the
// connections to the hosts and their facts, the plan, and the journal. Package steps decides
// what is done on a host, package plan in which order, and package engine executes it.
//
// It may import steps, registry, bundle, packaging, versions and manifest.
package installer

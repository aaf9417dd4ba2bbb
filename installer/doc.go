// Package installer owns one run: the cluster's folder on this machine, the
// bundle, the connections to the hosts and what these report, the plan, and the
// journal. What is done on a host is steps' business, in which order plan's,
// and carrying it out engine's.
//
// It may import steps, registry, bundle, packaging, versions and manifest.
package installer

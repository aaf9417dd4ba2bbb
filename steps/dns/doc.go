// Package dns configures name resolution in the cluster: CoreDNS, the cluster's name server, and
// the DNS cache on each node.
//
// It may import steps, steps/kubectl, manifest and manifest/part.
package dns

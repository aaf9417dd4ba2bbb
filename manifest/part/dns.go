package part

import (
	"net/netip"

	"github.com/mensylisir/kubexm/manifest"
)

// The DNS cache on each node. Pods send their queries to a link-local address that exists on
// every node, so that the answer comes from the node itself.
const (
	NodeCache        = "node-local-dns" // the names of its DaemonSet in kube-system, and of its image
	NodeCacheAddress = "169.254.20.10"  // the address that upstream's manifest uses
	NodeCacheLink    = "nodelocaldns"   // the network interface with the address; the program's default name
)

// Ports of the DNS cache on NodeCacheAddress.
const (
	NodeCacheMetricsPort = 9253
	NodeCacheHealthPort  = 9254
)

// NodeCacheOwnMetricsPort is the port on the loopback address for the metrics of the program
// that configures the interface.
const NodeCacheOwnMetricsPort = 9353

// NodeCachePorts returns the ports of the DNS cache, each with the address that it listens on: TCP,
// and for queries UDP too.
func NodeCachePorts() map[uint16]string {
	return map[uint16]string{
		53: NodeCacheAddress, NodeCacheMetricsPort: NodeCacheAddress, NodeCacheHealthPort: NodeCacheAddress, NodeCacheOwnMetricsPort: "127.0.0.1",
	}
}

// NodeCacheModules are the kernel modules that the DNS cache needs: its interface is a dummy.
func NodeCacheModules(c *manifest.Cluster) []string {
	if !HasNodeCache(c) {
		return nil
	}
	return []string{"dummy"}
}

// HasNodeCache reports whether the nodes of a cluster have a DNS cache.
func HasNodeCache(c *manifest.Cluster) bool {
	on := c.Spec.DNS.NodeLocalDNS.Enabled
	return on != nil && *on
}

// UnreachableMetric is the metric of the routes of Unreachable: any other route comes before.
const UnreachableMetric = "4278198272"

// Unreachable returns the ranges to which a node without another route sends nothing. A node's DNS
// cache asks the pods of CoreDNS as soon as kube-proxy knows them, at a boot before the node has
// routes to pods, and some networks ask pods of nodes that have left: the packets would leave by the
// default route.
func Unreachable(c *manifest.Cluster) []string {
	n := NetworkOf(c)
	if !n.Supported || !n.AsksPods && !HasNodeCache(c) { // the routes of another pod network are not known
		return nil
	}
	return c.Spec.Network.KubePodsCIDR
}

// ClusterDNS returns the address of the Service of CoreDNS: the tenth of the first range of
// Services, as kubeadm assigns it (GetDNSIP in cmd/kubeadm/app/constants/constants.go). It is ""
// without a valid range.
func ClusterDNS(c *manifest.Cluster) string {
	if len(c.Spec.Network.KubeServiceCIDR) == 0 {
		return ""
	}
	r, err := netip.ParsePrefix(c.Spec.Network.KubeServiceCIDR[0])
	if err != nil {
		return ""
	}
	a := r.Masked().Addr()
	for range 10 {
		a = a.Next()
	}
	return a.String()
}

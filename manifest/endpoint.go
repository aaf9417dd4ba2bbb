package manifest

import "strings"

// behindBalancer is the port of an API server behind a load balancer. The load balancer
// itself listens on the endpoint's port.
const behindBalancer = 6443

// APIServerPort returns the TCP port that each API server listens on. Without an external load
// balancer it is the port of spec.controlPlaneEndpoint.
func (c *Cluster) APIServerPort() int {
	if c.Spec.LoadBalancer.Mode != "external" {
		return c.Spec.ControlPlaneEndpoint.Port
	}
	return behindBalancer
}

// portsOfMasters are the other ports in use on a master. Sources: constants.go of kubeadm, and
// kube-proxy's defaults.
var portsOfMasters = map[int]string{
	2379: "etcd", 2380: "etcd", 2381: "etcd", 10248: "kubelet", 10249: "kube-proxy", 10250: "kubelet", 10256: "kube-proxy",
	10257: "kube-controller-manager", 10259: "kube-scheduler",
}

// NodeAddresses returns the addresses of h that the node uses: those of the pods' IP families,
// in the order of the pod ranges. An API server does not start if its first address and its
// first service range are of different families.
func (c *Cluster) NodeAddresses(h Host) []string {
	var out []string
	for _, r := range c.Spec.Network.KubePodsCIDR {
		for _, a := range h.InternalAddress {
			if strings.Contains(a, ":") == strings.Contains(r, ":") {
				out = append(out, a)
			}
		}
	}
	if len(out) == 0 {
		return h.InternalAddress
	}
	return out
}

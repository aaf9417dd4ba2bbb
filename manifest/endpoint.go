package manifest

import "strings"

// behindBalancer is the port of an API server that a load balancer stands
// before: the balancer itself listens on the endpoint's port.
const behindBalancer = 6443

// APIServerPort is the TCP port that each API server listens on. Where clients
// reach it directly, under its own address or the one that kube-vip holds, that
// is the port of spec.controlPlaneEndpoint.
func (c *Cluster) APIServerPort() int {
	if lb := c.Spec.LoadBalancer; lb.Mode == "none" || lb.Internal.Type == "kube-vip" {
		return c.Spec.ControlPlaneEndpoint.Port
	}
	return behindBalancer
}

// portsOfMasters are what else listens on a master: kubeadm's constants.go and
// kube-proxy's defaults.
var portsOfMasters = map[int]string{
	2379: "etcd", 2380: "etcd", 2381: "etcd", 10248: "kubelet", 10249: "kube-proxy", 10250: "kubelet", 10256: "kube-proxy",
	10257: "kube-controller-manager", 10259: "kube-scheduler",
}

// NodeAddresses are the addresses of h that its node takes: those of the
// families that the pods have, in the pods' order. An API server whose first
// address is of another family than its first service range does not start.
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

package manifest

import (
	"net/netip"
	"slices"
	"strconv"

	"github.com/mensylisir/kubexm/manifest/document"
)

const podsField, servicesField = "spec.network.kubePodsCIDR", "spec.network.kubeServiceCIDR"

// validateRanges finds address ranges that overlap or do not fit.
func (d *config) validateRanges(c *Cluster) {
	pods := d.families(podsField, c.Spec.Network.KubePodsCIDR)
	services := d.families(servicesField, c.Spec.Network.KubeServiceCIDR)
	for _, p := range pods {
		for _, s := range services {
			if p.Overlaps(s) {
				d.Fail(d.firstWrittenOf(servicesField, podsField), "choose ranges that do not overlap", "the service range %s overlaps the pod range %s", s, p)
			}
		}
		d.maskFits(c, p)
	}
	for _, s := range services {
		if limit := map[bool]int{true: 12, false: 108}[s.Addr().Is4()]; s.Bits() < limit {
			d.Fail(servicesField, "write a prefix length of "+strconv.Itoa(limit)+" or more", "%s is larger than the API server accepts", s)
		}
	}
	if len(pods) > 0 && len(services) > 0 && families(pods) != families(services) && d.Valid(podsField, servicesField) {
		d.Fail(d.firstWrittenOf(servicesField, podsField), "write ranges of the same families for pods and services",
			"the service ranges are %s, but the pod ranges are %s", families(services), families(pods))
	}
	d.validateCilium(c, pods)
	d.addressesOutside(c, pods, services)
}

// validateMultus checks that there is a pod network that kubexm installs: multus takes up its
// configuration, and a run waits for that.
func (d *config) validateMultus(c *Cluster) {
	if n := c.Spec.Network; n.Multus.Enabled && n.Plugin == "none" {
		d.Fail("spec.network.multus.enabled", "choose a plugin in spec.network.plugin, or install multus after your own pod network, as an add-on",
			"multus needs the configuration of a pod network, but spec.network.plugin is none")
	}
}

// validateCilium checks that pods have IPv4 addresses: in its tunnels cilium reaches other nodes by IPv4.
func (d *config) validateCilium(c *Cluster, pods []netip.Prefix) {
	if c.Spec.Network.Plugin == "cilium" && len(pods) > 0 && families(pods) == "IPv6" {
		d.Fail(podsField, "add an IPv4 range, or write plugin: calico or flannel", "has only IPv6 ranges, but kubexm configures cilium for IPv4 or both families")
	}
}

// families describes the IP families of ranges.
func families(rs []netip.Prefix) string {
	four := slices.ContainsFunc(rs, func(p netip.Prefix) bool { return p.Addr().Is4() })
	six := slices.ContainsFunc(rs, func(p netip.Prefix) bool { return p.Addr().Is6() })
	switch {
	case four && six:
		return "IPv4 and IPv6"
	case six:
		return "IPv6"
	}
	return "IPv4"
}

// firstWrittenOf returns the first of the fields that the document sets, or the last of them
// if it sets none.
func (d *config) firstWrittenOf(paths ...string) string {
	for _, p := range paths {
		if d.Written(p) {
			return p
		}
	}
	return paths[len(paths)-1]
}

// addressesOutside finds hosts with addresses in the ranges of pods and services, and hosts
// without an address of one of the pods' IP families.
func (d *config) addressesOutside(c *Cluster, pods, services []netip.Prefix) {
	all := append(slices.Clone(pods), services...)
	for i, h := range c.Spec.Hosts {
		path := document.Indexed("spec.hosts", i)
		check := func(at, address string) {
			ip, err := netip.ParseAddr(address)
			for _, r := range all {
				if err == nil && r.Contains(ip) {
					d.Fail(at, "choose other ranges in spec.network", "%s is in the range %s of pods or services", address, r)
				}
			}
		}
		check(path+".address", h.Address)
		for j, a := range h.InternalAddress {
			if at := document.Indexed(path+".internalAddress", j); d.Written(at) {
				check(at, a)
			}
		}
		if len(pods) == 2 && len(h.InternalAddress) == 1 && d.Valid(podsField) {
			d.Fail(path+".internalAddress", "write one IPv4 and one IPv6 address", "has one IP family, but the pod ranges have two")
		}
	}
	if vip, err := netip.ParseAddr(c.Spec.ControlPlaneEndpoint.Address); err == nil {
		for _, r := range all {
			if r.Contains(vip) {
				d.Fail("spec.controlPlaneEndpoint.address", "choose an address outside the ranges in spec.network", "%s is in the range %s of pods or services", vip, r)
			}
		}
	}
}

// families parses ranges and adds an error for a second range of one IP family.
func (d *config) families(at string, cidrs []string) []netip.Prefix {
	var out []netip.Prefix
	for i, s := range cidrs {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			continue // reported already
		}
		if slices.ContainsFunc(out, func(q netip.Prefix) bool { return q.Addr().Is4() == p.Addr().Is4() }) {
			d.Fail(document.Indexed(at, i), "write one IPv4 and one IPv6 range at most", "%s is a second range of the same IP family", p)
			continue
		}
		out = append(out, p)
	}
	return out
}

// maskFits checks that the pod range can be split into ranges for the nodes.
func (d *config) maskFits(c *Cluster, p netip.Prefix) {
	mask, field := c.Spec.Kubernetes.NodeCIDRMaskSize, "spec.kubernetes.nodeCidrMaskSize"
	if p.Addr().Is6() {
		mask, field = c.Spec.Kubernetes.NodeCIDRMaskSizeIPv6, "spec.kubernetes.nodeCidrMaskSizeIPv6"
	}
	if !d.Valid(field, podsField) {
		return
	}
	at, name := d.firstWrittenOf(field, podsField), field[len("spec.kubernetes."):]
	switch {
	case mask <= p.Bits():
		d.Fail(at, "write a longer mask, or a larger pod range", "%s of %d leaves no range for a second node in %s", name, mask, p)
	case mask-p.Bits() > 16:
		d.Fail(at, "write a mask of at most "+strconv.Itoa(p.Bits()+16), "%s of %d splits %s into more than 65536 ranges, which kube-controller-manager rejects", name, mask, p)
	case len(c.Spec.Hosts) > 1<<(mask-p.Bits()):
		d.Fail(at, "write a longer mask, or a larger pod range", "%s of %d results in %d ranges in %s, but there are %d hosts", name, mask, 1<<(mask-p.Bits()), p, len(c.Spec.Hosts))
	}
	free := min(p.Addr().BitLen()-mask, 32) // bits
	if pods := c.Spec.Kubernetes.MaxPods; mask > p.Bits() && free >= 0 && (free > 0 || p.Addr().Is6()) && pods > 1<<free-2 && d.Valid("spec.kubernetes.maxPods") {
		d.Fail(d.firstWrittenOf("spec.kubernetes.maxPods", field), "write fewer pods, or a shorter mask", "%d pods do not fit into a node's /%d", pods, mask)
	}
	block := c.Spec.Network.IPPool.BlockSize
	if p.Addr().Is4() && c.Spec.Network.Plugin == "calico" && block < p.Bits() && d.Valid("spec.network.ippool.blockSize") {
		d.Fail(d.firstWrittenOf("spec.network.ippool.blockSize", podsField), "write a longer block size, or a larger pod range", "a block of /%d does not fit into the pod range %s", block, p)
	}
}

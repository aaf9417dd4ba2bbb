package manifest

import (
	"fmt"
	"math/bits"
	"net/netip"
	"reflect"
	"slices"

	"github.com/mensylisir/kubexm/manifest/document"
)

// inherit gives every host what spec.ssh says and the host does not.
func (d *config) inherit(c *Cluster) {
	for i := range c.Spec.Hosts {
		h := &c.Spec.Hosts[i]
		path := fmt.Sprintf("spec.hosts[%d]", i)
		from, to := reflect.ValueOf(c.Spec.SSH), reflect.ValueOf(&h.SSH).Elem()
		own := d.Written(path+".password") || d.Written(path+".privateKeyPath") || d.Written(path+".agent")
		for _, f := range document.Keys(to.Type()) {
			if d.Written(document.Join(path, f.Name)) {
				continue
			}
			// A way to log in of the host's own stands for itself: a password
			// written on the host is not mixed with a key meant for the others.
			if own && (f.Name == "password" || f.Name == "privateKeyPath" || f.Name == "passphrase" || f.Name == "agent") {
				continue
			}
			to.FieldByIndex(f.Index).Set(from.FieldByIndex(f.Index))
		}
		useAgent(&h.Login)
		if h.JumpHost != nil {
			j := *h.JumpHost
			useAgent(&j.Login)
			h.JumpHost = &j
		}
		if len(h.InternalAddress) == 0 && isIP(h.Address) {
			h.InternalAddress = []string{h.Address}
		}
	}
}

func useAgent(l *Login) {
	if l.Agent == nil {
		on := l.Password.IsZero() && l.PrivateKeyPath == ""
		l.Agent = &on
	}
}

// derive sets the defaults that depend on other fields.
func (d *config) derive(c *Cluster) {
	s := &c.Spec
	if s.LoadBalancer.Mode == "" {
		switch {
		case s.LoadBalancer.External.Type != "":
			s.LoadBalancer.Mode = "external"
		case s.LoadBalancer.Internal.Type != "":
			s.LoadBalancer.Mode = "internal"
		default:
			s.LoadBalancer.Mode = "none"
		}
	}
	if s.Kubernetes.KubeProxy.Mode == "" {
		s.Kubernetes.KubeProxy.Mode = "ipvs"
		if minor(s.Kubernetes.Version) >= 35 {
			s.Kubernetes.KubeProxy.Mode = "nftables"
		}
	}
	d.wholeRanges(s.Kubernetes.KubeProxy.IPVS.ExcludeCIDRs)
	if s.Kubernetes.NodeCIDRMaskSizeIPv6 == 0 {
		s.Kubernetes.NodeCIDRMaskSizeIPv6 = nodeMaskIPv6(s.Network.KubePodsCIDR, s.Kubernetes.MaxPods)
	}
	if s.Network.Calico.IPIPMode == "" {
		s.Network.Calico.IPIPMode = "Always"
		if s.Network.Calico.VXLANMode != "Never" {
			s.Network.Calico.IPIPMode = "Never"
		}
	}
	if s.Etcd.Type == "kubexm" && len(s.RoleGroups.Etcd) == 0 {
		s.RoleGroups.Etcd = slices.Clone(s.RoleGroups.Master)
	}
	if s.Registry.Type == "" {
		switch {
		case len(s.RoleGroups.Registry) > 0:
			s.Registry.Type = "registry"
		case s.Registry.PrivateRegistry != "":
			s.Registry.Type = "external"
		}
	}
	if s.Registry.Type == "none" {
		s.Registry.Type = ""
	}
	if s.Registry.PrivateRegistry == "" && (s.Registry.Type == "registry" || s.Registry.Type == "harbor") {
		s.Registry.PrivateRegistry = "dockerhub.kubexm.local"
	}
	if s.DNS.NodeLocalDNS.Enabled == nil {
		on := len(s.DNS.NodeLocalDNS.ExternalZones) > 0
		s.DNS.NodeLocalDNS.Enabled = &on
	}
}

// nodeMaskIPv6 is the prefix length of a node's part of the IPv6 pod range: 256 nodes
// at least, where as many parts with room for the pods of a node fit. The node IPAM
// controller cuts a range into 65536 parts at most.
func nodeMaskIPv6(ranges []string, maxPods int) int {
	mask := 64
	for _, r := range ranges {
		if p, err := netip.ParsePrefix(r); err == nil && p.Addr().Is6() {
			mask = min(max(64, p.Bits()+8), p.Bits()+16, 128)
			if room := 128 - bits.Len(uint(max(maxPods, 1)+1)); room > p.Bits() {
				mask = min(mask, room)
			}
		}
	}
	return mask
}

// wholeRanges puts the range in the place of an address that lies in it, as kube-proxy
// reads it, and says so.
func (d *config) wholeRanges(ranges []string) {
	const path = "spec.kubernetes.kubeProxy.ipvs.excludeCIDRs"
	for i, r := range ranges {
		if p, err := netip.ParsePrefix(r); err == nil && p != p.Masked() {
			d.Warn(document.Indexed(path, i), "write "+p.Masked().String(), "%s is an address in a range, and stands for %s", r, p.Masked())
			ranges[i] = p.Masked().String()
		}
	}
}

// minor gives the minor number of a Kubernetes version, 0 when it has none.
func minor(version string) int {
	var major, n int
	if _, err := fmt.Sscanf(version, "v%d.%d", &major, &n); err != nil {
		return 0
	}
	return n
}

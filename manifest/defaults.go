package manifest

import (
	"fmt"
	"math/bits"
	"net/netip"
	"reflect"
	"slices"

	"github.com/mensylisir/kubexm/manifest/document"
)

// inherit copies the fields of spec.ssh to every host that does not set them itself.
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
			// The credentials of a host are not mixed with those of spec.ssh: a host with its
			// own password must not also use the private key for the other hosts.
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
	d.completeRanges(s.Kubernetes.KubeProxy.IPVS.ExcludeCIDRs)
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
	if s.Storage.OpenEBS.BasePath == "" && d.Written("spec.storage.openebs") {
		s.Storage.OpenEBS.BasePath = "/var/openebs/local"
	}
	if s.DNS.NodeLocalDNS.Enabled == nil {
		on := len(s.DNS.NodeLocalDNS.ExternalZones) > 0
		s.DNS.NodeLocalDNS.Enabled = &on
	}
}

// nodeMaskIPv6 returns the prefix length of a node's part of the IPv6 pod range. It allows at
// least 256 nodes if that many parts with enough addresses for maxPods fit into the range. The
// node IPAM controller of Kubernetes splits a range into at most 65536 parts.
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

// completeRanges replaces an address with a prefix length by its range, which is how kube-proxy
// reads it, and adds a warning.
func (d *config) completeRanges(ranges []string) {
	const path = "spec.kubernetes.kubeProxy.ipvs.excludeCIDRs"
	for i, r := range ranges {
		if p, err := netip.ParsePrefix(r); err == nil && p != p.Masked() {
			d.Warn(document.Indexed(path, i), "write "+p.Masked().String(), "%s is an address with a prefix length, and means the range %s", r, p.Masked())
			ranges[i] = p.Masked().String()
		}
	}
}

// minor returns the minor number of a Kubernetes version, 0 for an invalid version.
func minor(version string) int {
	var major, n int
	if _, err := fmt.Sscanf(version, "v%d.%d", &major, &n); err != nil {
		return 0
	}
	return n
}

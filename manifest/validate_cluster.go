package manifest

import (
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// validateEndpoint holds the load balancer's parts against roles and addresses.
func (d *document) validateEndpoint(c *Cluster) {
	lb, cp, roles := c.Spec.LoadBalancer, c.Spec.ControlPlaneEndpoint, c.Spec.RoleGroups
	hosts := roles.Names(RoleLoadBalancer)
	external, internal := lb.External.Type, lb.Internal.Type
	if d.reported("spec.loadBalancer.external.type") || d.reported("spec.loadBalancer.internal.type") {
		return // which of them was meant is not known
	}
	ours := external == "kubexm-kh" || external == "kubexm-kn"
	switch {
	case ours && len(hosts) == 0 && len(c.Spec.Hosts) > 0:
		d.fail("spec.loadBalancer.external.type", "name hosts in spec.roleGroups.loadbalancer", "is %s, and no host has the role loadbalancer", external)
	case !ours && len(hosts) > 0:
		d.fail("spec.roleGroups.loadbalancer", "write spec.loadBalancer.external.type: kubexm-kh or kubexm-kn, or take the hosts out", "has hosts, and spec.loadBalancer.external.type is %s", orNothing(external))
	}
	if external != "" && internal != "" {
		d.fail("spec.loadBalancer.internal.type", "choose one of the two", "is %s, and the external load balancer is %s", internal, external)
	}
	if lb.Mode == "external" && external == "" || lb.Mode == "internal" && internal == "" {
		d.fail("spec.loadBalancer.mode", "write spec.loadBalancer."+lb.Mode+".type", "is %s, and %s.type is not written", lb.Mode, lb.Mode)
	}
	if lb.Mode == "none" && external+internal != "" {
		d.fail("spec.loadBalancer.mode", "leave mode out", "is none, and a type is written")
	}
	needsVIP := map[string]string{ // path → why
		"spec.loadBalancer.external.type": choose(ours || external == "external", external),
		"spec.loadBalancer.internal.type": choose(internal == "kube-vip", internal),
	}
	for at, kind := range needsVIP {
		if kind != "" && cp.Address == "" && !cp.ExternalDNS {
			d.fail(at, "write spec.controlPlaneEndpoint.address", "is %s, which needs a virtual IP, and there is none", kind)
		}
	}
	if cp.ExternalDNS && cp.Address != "" {
		d.fail("spec.controlPlaneEndpoint.externalDNS", "leave the address empty, or externalDNS false", "is true, and the address is %s", cp.Address)
	}
	for i, h := range c.Spec.Hosts {
		if cp.Address != "" && slices.Contains(append(h.InternalAddress, h.Address), cp.Address) && (ours || internal == "kube-vip") {
			d.fail("spec.controlPlaneEndpoint.address", "choose an address that no host has", "%s is an address of %s", cp.Address, indexed("spec.hosts", i))
		}
	}
	if masters := roles.Names(RoleMaster); len(masters) > 1 && lb.Mode == "none" && cp.Address == "" && !cp.ExternalDNS {
		d.warn("spec.loadBalancer", "write internal.type: haproxy, nginx or kube-vip",
			"%d masters have no load balancer: when the first one is down, workers reach no API server", len(masters))
	}
}

func choose(ok bool, s string) string {
	if ok {
		return s
	}
	return ""
}

func orNothing(s string) string {
	if s == "" {
		return "not written"
	}
	return s
}

func (d *document) validateEtcd(c *Cluster) {
	e := c.Spec.Etcd
	switch {
	case e.Type == "external" && len(e.External.Endpoints) == 0:
		d.fail("spec.etcd.external.endpoints", "write the addresses of its members, as in https://192.168.6.6:2379", "is missing, and spec.etcd.type is external")
	case e.Type != "external" && d.written["spec.etcd.external"]:
		d.fail("spec.etcd.external", "write type: external, or leave it out", "means nothing where spec.etcd.type is %s", e.Type)
	}
	if (e.External.CertFile == "") != (e.External.KeyFile == "") {
		d.fail("spec.etcd.external", "write both certFile and keyFile, or neither", "has one of certFile and keyFile")
	}
	for i, a := range e.External.Endpoints {
		if strings.HasPrefix(a, "https://") && e.External.CAFile == "" {
			d.fail(indexed("spec.etcd.external.endpoints", i), "write spec.etcd.external.caFile", "speaks TLS, and there is no caFile to check it with")
			break
		}
	}
	if e.ElectionTimeout < 5*e.HeartbeatInterval {
		d.fail("spec.etcd.electionTimeout", "write at least five times heartbeatInterval", "%d ms is under five times the heartbeat interval of %d ms", e.ElectionTimeout, e.HeartbeatInterval)
	}
	if e.QuotaBackendBytes > 8<<30 {
		d.warn("spec.etcd.quotaBackendBytes", "write at most 8589934592", "%d is above 8 GiB, which etcd warns of", e.QuotaBackendBytes)
	}
	if e.Type == "external" && e.Version != "" {
		d.warn("spec.etcd.version", "leave it out", "means nothing where spec.etcd.type is external")
	}
}

// validateRanges finds address ranges that overlap or do not fit.
func (d *document) validateRanges(c *Cluster) {
	pods := d.families("spec.network.kubePodsCIDR", c.Spec.Network.KubePodsCIDR)
	services := d.families("spec.network.kubeServiceCIDR", c.Spec.Network.KubeServiceCIDR)
	for _, p := range pods {
		for _, s := range services {
			if p.Overlaps(s) {
				d.fail("spec.network.kubeServiceCIDR", "choose ranges that do not overlap", "%s overlaps the pod range %s", s, p)
			}
		}
		mask, field := c.Spec.Kubernetes.NodeCIDRMaskSize, "spec.kubernetes.nodeCidrMaskSize"
		if p.Addr().Is6() {
			mask, field = c.Spec.Kubernetes.NodeCIDRMaskSizeIPv6, "spec.kubernetes.nodeCidrMaskSizeIPv6"
		}
		d.maskFits(c, p, mask, field)
	}
	for _, s := range services {
		if limit := map[bool]int{true: 12, false: 108}[s.Addr().Is4()]; s.Bits() < limit {
			d.fail("spec.network.kubeServiceCIDR", "write a prefix of "+strconv.Itoa(limit)+" or longer", "%s is larger than the API server takes", s)
		}
	}
	if len(pods) > 0 && len(services) > 0 && len(pods) != len(services) {
		d.fail("spec.network.kubeServiceCIDR", "write one range of each family for pods and services alike", "has %d families, and the pods have %d", len(services), len(pods))
	}
	for i, h := range c.Spec.Hosts {
		for _, a := range append(slices.Clone(h.InternalAddress), h.Address) {
			ip, err := netip.ParseAddr(a)
			if err != nil {
				continue
			}
			for _, r := range append(slices.Clone(pods), services...) {
				if r.Contains(ip) {
					d.fail(indexed("spec.hosts", i)+".address", "choose other ranges in spec.network", "%s lies in the range %s", a, r)
				}
			}
		}
		if len(pods) == 2 && len(h.InternalAddress) == 1 {
			d.fail(indexed("spec.hosts", i)+".internalAddress", "write one IPv4 and one IPv6 address", "has one family, and the pods have two")
		}
	}
	if vip, err := netip.ParseAddr(c.Spec.ControlPlaneEndpoint.Address); err == nil {
		for _, r := range append(slices.Clone(pods), services...) {
			if r.Contains(vip) {
				d.fail("spec.controlPlaneEndpoint.address", "choose an address outside of the ranges in spec.network", "%s lies in the range %s", vip, r)
			}
		}
	}
}

// families parses ranges and wants one of each family at most.
func (d *document) families(at string, cidrs []string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range cidrs {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			continue // reported already
		}
		for _, q := range out {
			if q.Addr().Is4() == p.Addr().Is4() {
				d.fail(at, "write one IPv4 and one IPv6 range at most", "%s is a second range of its family", p)
			}
		}
		out = append(out, p)
	}
	return out
}

func (d *document) maskFits(c *Cluster, p netip.Prefix, mask int, field string) {
	switch {
	case mask <= p.Bits():
		d.fail(field, "write a longer mask, or a larger pod range", "%d leaves no range for a second node in %s", mask, p)
	case mask-p.Bits() > 16:
		d.fail(field, "write a mask of at most "+strconv.Itoa(p.Bits()+16), "%d cuts %s into more than 65536 ranges, which the controller refuses", mask, p)
	case len(c.Spec.Hosts) > 1<<(mask-p.Bits()):
		d.fail(field, "write a longer mask, or a larger pod range", "%d gives %d ranges, and there are %d hosts", mask, 1<<(mask-p.Bits()), len(c.Spec.Hosts))
	}
	if p.Addr().Is4() && mask < 32 && c.Spec.Kubernetes.MaxPods > 1<<(32-mask)-2 {
		d.fail("spec.kubernetes.maxPods", "write fewer pods, or a shorter mask", "%d pods do not fit into a node's /%d", c.Spec.Kubernetes.MaxPods, mask)
	}
}

func (d *document) validateKubernetes(c *Cluster) {
	k := c.Spec.Kubernetes
	m := minor(k.Version)
	for name := range k.FeatureGates {
		if last, gone := goneGates[name]; gone && m > last {
			d.warn(join("spec.kubernetes.featureGates", name), "take it out", "%s is gone since Kubernetes 1.%d and is left out", name, last+1)
		}
	}
	p := k.KubeProxy
	if p.Mode == "ipvs" && m >= 35 {
		d.warn("spec.kubernetes.kubeProxy.mode", "write mode: nftables", "ipvs is deprecated from Kubernetes 1.35 on")
	}
	if p.Mode == "nftables" && m > 0 && m < 29 {
		d.fail("spec.kubernetes.kubeProxy.mode", "write mode: ipvs or iptables", "nftables exists from Kubernetes 1.29 on")
	}
	if len(p.IPVS.ExcludeCIDRs) > 0 && p.Mode != "ipvs" {
		d.warn("spec.kubernetes.kubeProxy.ipvs", "leave it out", "means nothing in mode %s", p.Mode)
	}
	if c.Spec.LoadBalancer.Internal.Type == "kube-vip" && p.Mode == "ipvs" && len(p.IPVS.ExcludeCIDRs) == 0 {
		d.warn("spec.kubernetes.kubeProxy.ipvs.excludeCIDRs", "write the nodes' range there", "is empty, and kube-proxy in mode ipvs removes kube-vip's rules")
	}
	if m > 0 && m < 24 {
		d.fail("spec.kubernetes.version", "choose 1.24 or newer", "%s is older than what kubexm knows", k.Version)
	}
	n := c.Spec.Network
	if n.Plugin == "calico" && n.Calico.IPIPMode != "Never" && n.Calico.VXLANMode != "Never" {
		d.fail("spec.network.calico.vxlanMode", "set one of ipipMode and vxlanMode to Never", "is %s, and ipipMode is %s", n.Calico.VXLANMode, n.Calico.IPIPMode)
	}
	for _, other := range []string{"calico", "flannel"} {
		if n.Plugin != other && d.written["spec.network."+other] {
			d.warn("spec.network."+other, "leave it out", "means nothing where the plugin is %s", n.Plugin)
		}
	}
	for _, e := range []struct{ kind, field string }{{"containerd", "containerd"}, {"docker", "docker"}, {"cri-o", "cri-o"}, {"isulad", "isulad"}} {
		if c.Spec.Runtime.Type != e.kind && d.written["spec.runtime."+e.field] && !(e.kind == "docker" && c.Spec.Registry.Type == "harbor") {
			d.warn("spec.runtime."+e.field, "leave it out", "means nothing where the runtime is %s", c.Spec.Runtime.Type)
		}
	}
}

// goneGates are feature gates and the last minor version that knew them:
// naming one to a later version keeps the component from starting. From the
// Kubernetes releases' lists of removed feature gates.
var goneGates = map[string]int{
	"ExpandCSIVolumes":       26,
	"CSIStorageCapacity":     27,
	"TTLAfterFinished":       24,
	"EphemeralContainers":    26,
	"GenericEphemeralVolume": 24,
	"IPv6DualStack":          24,
	"CSIMigration":           26,
	"NetworkPolicyEndPort":   26,
	"PodSecurity":            27,
}

func (d *document) validateRegistry(c *Cluster) {
	r := c.Spec.Registry
	hosts := len(c.Spec.RoleGroups.Registry)
	switch {
	case (r.Type == "registry" || r.Type == "harbor") && hosts == 0 && len(c.Spec.Hosts) > 0:
		d.fail("spec.registry.type", "name a host in spec.roleGroups.registry", "is %s, and no host has the role registry", r.Type)
	case (r.Type == "external" || r.Type == "") && hosts > 0:
		d.fail("spec.roleGroups.registry", "write spec.registry.type: registry or harbor, or take the host out", "names a host, and spec.registry.type installs none")
	case r.Type == "external" && r.PrivateRegistry == "":
		d.fail("spec.registry.privateRegistry", "write its name, as in images: host or host:port", "is missing, and spec.registry.type is external")
	}
	if d.written["spec.registry.harborConfig"] && r.Type != "harbor" {
		d.warn("spec.registry.harborConfig", "write type: harbor, or leave it out", "means nothing where spec.registry.type is %s", orNothing(r.Type))
	}
	if r.HarborConfig.HTTPPort == r.HarborConfig.HTTPSPort {
		d.fail("spec.registry.harborConfig.httpsPort", "choose two ports", "is the same as httpPort")
	}
	for host, a := range r.Auths {
		at := join("spec.registry.auths", host)
		if !isHostPort(host) {
			d.fail(at, "write host or host:port, without a scheme", "%q is no registry", shown(host))
		}
		if a.SkipTLSVerify && a.PlainHTTP {
			d.fail(at, "choose one of the two", "has skipTLSVerify and plainHTTP")
		}
		if (a.Username == "") != a.Password.IsZero() {
			d.fail(at, "write both, or neither", "has one of username and password")
		}
	}
}

func (d *document) validateAddons(c *Cluster) {
	seen := map[string]bool{}
	for i, a := range c.Spec.Addons {
		at := indexed("spec.addons", i)
		key := a.Namespace + "/" + a.Name
		if seen[key] {
			d.fail(at, "name it once", "%s stands twice", a.Name)
		}
		seen[key] = true
		if a.Type == "yaml" && len(a.Values) > 0 {
			d.fail(at+".values", "write type: helm, or leave the values out", "are a chart's, and the type is yaml")
		}
		if a.Type == "yaml" && strings.HasPrefix(a.Source, "oci://") {
			d.fail(at+".source", "write type: helm", "is a chart's address, and the type is yaml")
		}
		if scheme, _, ok := strings.Cut(a.Source, "://"); ok && scheme != "https" && scheme != "http" && scheme != "oci" {
			d.fail(at+".source", "write an https:// or oci:// address, or a path", "%s:// is no scheme that kubexm fetches from", scheme)
		}
	}
}

func (d *document) validateSystem(c *Cluster) {
	for i, e := range c.Spec.Extra.Hosts {
		if slices.ContainsFunc(c.Spec.Hosts, func(h Host) bool { return h.Name == e.Domain }) {
			d.fail(indexed("spec.extra.hosts", i), "choose another name", "%s is the name of a host", e.Domain)
		}
	}
}

func (d *document) validateBundle(c *Cluster) {
	b := c.Spec.Bundle
	for i, p := range b.Platforms {
		at := indexed("spec.bundle.platforms", i)
		switch {
		case p.OS != "linux" || (p.Arch != "amd64" && p.Arch != "arm64"):
			d.fail(at, "write linux/amd64 or linux/arm64", "%s is no platform that kubexm serves", p)
		case p.Distribution != "":
			d.fail(at, "write distributions in spec.bundle.operatingSystems", "%s names a distribution", p)
		case slices.Index(b.Platforms, p) < i:
			d.warn(at, "write it once", "%s stands twice", p)
		}
	}
	for i, h := range c.Spec.Hosts {
		if p := (Platform{OS: "linux", Arch: h.Arch}); len(b.Platforms) > 0 && !slices.Contains(b.Platforms, p) {
			d.fail("spec.bundle.platforms", "add "+p.String(), "lacks %s, which %s is", p, indexed("spec.hosts", i))
		}
	}
	for i, v := range b.KubernetesVersions {
		if v == c.Spec.Kubernetes.Version || slices.Index(b.KubernetesVersions, v) < i {
			d.warn(indexed("spec.bundle.kubernetesVersions", i), "write it once", "%s is in the bundle already", v)
		}
	}
	files := map[string]bool{}
	for i, f := range b.Files {
		if key := path.Join(f.Name, f.Platform.String()); files[key] {
			d.fail(indexed("spec.bundle.files", i)+".name", "give every file of a platform a name of its own", "%s stands twice", f.Name)
		} else {
			files[key] = true
		}
	}
}

func (d *document) validateSources(s Sources, at string) {
	seen := map[string]bool{}
	for i, r := range s.Replace {
		p := indexed(at+".replace", i)
		from := strings.TrimSuffix(r.From, "/")
		if seen[from] && from != "" {
			d.fail(p+".from", "keep one of the two", "%s is replaced twice", from)
		}
		seen[from] = true
		if strings.HasPrefix(r.To, "http://") && !r.PlainHTTP {
			d.fail(p+".to", "write https://, or plainHTTP: true if you trust the network in between", "speaks plain http, and plainHTTP is not true")
		}
		if strings.HasPrefix(r.To, "https://") && r.PlainHTTP {
			d.fail(p+".plainHTTP", "leave it out", "is true, and the address is https")
		}
	}
}

package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// validateDNS finds zones that CoreDNS refuses: it does not start with a zone that is defined
// twice on one port.
func (d *config) validateDNS(c *Cluster) {
	const coredns, cache = "spec.dns.coredns.externalZones", "spec.dns.nodelocaldns.externalZones"
	d.zonesOnce(coredns, c.Spec.DNS.CoreDNS.ExternalZones, map[string]string{".:53": "the zone of all other names"})
	d.zonesOnce(cache, c.Spec.DNS.NodeLocalDNS.ExternalZones, map[string]string{
		".:53": "the zone of all other names", zoneKey(c.Spec.Kubernetes.ClusterName): "the zone of the cluster",
		"in-addr.arpa:53": "the zone of all IPv4 addresses", "ip6.arpa:53": "the zone of all IPv6 addresses",
	})
	on := c.Spec.DNS.NodeLocalDNS.Enabled
	if on == nil || !*on || !d.Valid(podsField) {
		return
	}
	at := d.firstWrittenOf("spec.dns.nodelocaldns.enabled", cache)
	if !slices.ContainsFunc(c.Spec.Network.KubePodsCIDR, func(r string) bool { return strings.Contains(r, ".") }) {
		d.Fail(at, "write enabled: false", "the DNS cache on nodes has an IPv4 address, but the pods have IPv6 addresses only")
	}
}

// zonesOnce finds zones that occur twice. taken are those that kubexm configures itself.
func (d *config) zonesOnce(at string, all []ExternalZone, taken map[string]string) {
	for i, z := range all {
		for j, name := range z.Zones {
			key, path := zoneKey(name), fmt.Sprintf("%s.zones[%d]", document.Indexed(at, i), j)
			if first := taken[key]; first != "" {
				d.Fail(path, "write each zone once", "%s is already %s", name, first)
				continue
			}
			taken[key] = "in " + path
		}
	}
}

// zoneKey returns a zone in lower case, without the dot at its end, and with its port.
func zoneKey(zone string) string {
	name, port, found := cutPort(strings.ToLower(zone))
	if !found {
		port = "53"
	}
	if name = strings.TrimSuffix(name, "."); name == "" {
		name = "."
	}
	return name + ":" + port
}

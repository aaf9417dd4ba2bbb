package dns_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/dns"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestCacheCorefile(t *testing.T) {
	const dual = "plugin: flannel, kubePodsCIDR: 'fd00:10::/48,10.233.64.0/18', kubeServiceCIDR: 'fd00:20::/112,10.233.0.0/18'"
	for name, c := range map[string]struct{ network, settings string }{
		"default":   {"plugin: flannel", "nodelocaldns: {enabled: true}"},
		"upstreams": {"plugin: flannel", "coredns: {upstreamDNSServers: [192.0.2.53, '192.0.2.54:5353']}, nodelocaldns: {enabled: true}"},
		"zones": {
			"plugin: flannel", "nodelocaldns: {externalZones: [{zones: [site.local, 'example.io:1053'], nameservers: [192.0.2.53], cache: 5," +
				" rewrite: [name a.site.local b.site.local]}, {zones: [quick.local], nameservers: ['192.0.2.54:5353', 'fd00::53'], cache: 0}]}",
		},
		"hosts-of-a-zone": {"plugin: flannel", "dnsEtcHosts: '192.0.2.50 git.site.local', nodelocaldns: {externalZones: [{zones: [site.local], nameservers: [192.0.2.53]}]}"},
		"first-ipv6":      {dual, "nodelocaldns: {enabled: true}"},
	} {
		t.Run(name, func(t *testing.T) {
			config := strings.Replace(steptest.Small, "plugin: flannel", c.network, 1)
			if c.network == dual {
				config = strings.Replace(config, "192.0.2.11}", "192.0.2.11, internalAddress: 'fd00::11,10.0.0.11'}", 1)
			}
			got := dns.CacheCorefile(steptest.Cluster(t, config+"  dns: {"+c.settings+"}\n"))
			steptest.Golden(t, *update, "cache-"+name, got)
			if strings.Count(got, "{") != strings.Count(got, "}") || strings.Contains(got, "cache 0") {
				t.Errorf("CoreDNS does not start with\n%s", got)
			}
			// One server that listens elsewhere would take the port of a name server of the host.
			if blocks, binds := strings.Count("\n"+got, "\n}\n"), strings.Count(got, "bind 169.254.20.10\n"); blocks != binds {
				t.Errorf("%d servers, %d of which listen on the address of the cache:\n%s", blocks, binds, got)
			}
		})
	}
}

// TestCacheObjects: the objects that the cache is made of, as the API server has them.
func TestCacheObjects(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small+"  dns: {nodelocaldns: {enabled: true}}\n")
	sim := conntest.New(nil)
	kube := steptest.NewKube(c)
	kube.On(sim, c.Spec.Hosts[0].Name)
	steptest.ExistingCluster(c)(sim)
	kase, step := steptest.Case{Cluster: c}, dns.Cache(c)
	if err := step.Run(t.Context(), kase.NewHost(t, sim, step)); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, of := range []struct{ api, kind string }{{"v1", "ServiceAccount"}, {"v1", "ConfigMap"}, {"apps/v1", "DaemonSet"}} {
		text, err := yaml.Marshal(kube.Object(of.api, of.kind, "kube-system", "node-local-dns"))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n" + string(text))
	}
	steptest.Golden(t, *update, "cache-objects.yaml", b.String())
}

package dns_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/dns"
	"github.com/mensylisir/kubexm/steps/steptest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// kubeadms is what kubeadm writes for a cluster of the domain cluster.local:
// cmd/kubeadm/app/phases/addons/dns/manifests.go of Kubernetes v1.32.2.
const kubeadms = `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
`

func TestCorefileWithoutBlocksIsKubeadms(t *testing.T) {
	if got := dns.Corefile(steptest.Cluster(t, steptest.Small)); got != kubeadms {
		t.Errorf("got\n%s", got)
	}
}

func TestCorefileWithEachBlock(t *testing.T) {
	for name, settings := range map[string]string{
		"hosts":           "dnsEtcHosts: \"192.0.2.50 git.site.local git\\n# a comment\\n\\n192.0.2.51 db.site.local\\n\"",
		"additional":      "coredns: {additionalConfigs: \"log\\ntemplate ANY AAAA {\\n    rcode NOERROR\\n}\\n\"}",
		"rewrite":         "coredns: {rewriteBlock: \"rewrite stop {\\n    name regex (.*)\\\\.old\\\\.local {1}.new.local\\n    answer auto\\n}\\n\"}",
		"upstream":        "coredns: {upstreamDNSServers: [192.0.2.53, '192.0.2.54:5353', 'fd00::53']}",
		"hosts-of-a-zone": "dnsEtcHosts: \"192.0.2.50 git.site.local\", coredns: {externalZones: [{zones: [site.local], nameservers: [192.0.2.53], rewrite: [name a.site.local b.site.local]}]}",
		"zones": "coredns: {externalZones: [{zones: [site.local, 'example.io:1053'], nameservers: [192.0.2.53], cache: 5, rewrite: [name a.site.local b.site.local]}," +
			" {zones: [quick.local], nameservers: ['192.0.2.54:5353', 'fd00::53'], cache: 0}]}",
	} {
		t.Run(name, func(t *testing.T) {
			got := dns.Corefile(steptest.Cluster(t, steptest.Small+"  dns: {"+settings+"}\n"))
			steptest.Golden(t, *update, "corefile-"+name, got)
			depth := 0
			for line := range strings.Lines(got) {
				switch word := strings.TrimSpace(line); {
				case strings.HasSuffix(word, " {"):
					depth++
				case word == "}":
					depth--
				}
				if depth < 0 {
					t.Fatal("a block ends that never began")
				}
			}
			if depth != 0 {
				t.Errorf("%d blocks have no end", depth)
			}
			if strings.Contains(got, "cache 0") {
				t.Error("CoreDNS does not start with cache 0")
			}
			// What kubeadm has is still there, every line of it.
			for line := range strings.Lines(kubeadms) {
				if !strings.Contains(got, line) && !strings.Contains(line, "/etc/resolv.conf") {
					t.Errorf("%q is gone", line)
				}
			}
		})
	}
}

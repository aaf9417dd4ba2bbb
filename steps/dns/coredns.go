package dns

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// CoreDNS writes the Corefile with the settings of spec.dns and replaces CoreDNS's pods.
// Running pods would reload it only after a minute or so, and a cluster that is reported
// ready would not resolve the configured names yet.
func CoreDNS(c *manifest.Cluster) steps.Step {
	return kubectl.Apply("kubernetes.configure-coredns", nil, func(context.Context, *steps.Host) ([]byte, error) {
		text := Corefile(c)
		config, err := yaml.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "coredns", "namespace": "kube-system"},
			"data":     map[string]string{"Corefile": text},
		})
		if err != nil {
			return nil, err
		}
		pods, err := yaml.Marshal(map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "coredns", "namespace": "kube-system"},
			"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
				"annotations": map[string]string{"kubexm.mensylisir.io/corefile": digest.FromString(text).String()},
			}}},
		})
		return slices.Concat(config, []byte("---\n"), pods), err
	})
}

// Corefile returns kubeadm's default Corefile with the settings of spec.dns.
func Corefile(c *manifest.Cluster) string {
	d := c.Spec.DNS
	var b strings.Builder
	for _, z := range d.CoreDNS.ExternalZones {
		b.WriteString(strings.Join(z.Zones, " ") + " {\n    errors\n")
		for _, r := range z.Rewrite {
			b.WriteString("    rewrite " + r + "\n")
		}
		etcHosts(&b, d.DNSEtcHosts)
		b.WriteString("    forward . " + strings.Join(z.Nameservers, " ") + "\n")
		if z.Cache > 0 { // CoreDNS rejects a zero
			b.WriteString("    cache " + strconv.Itoa(z.Cache) + "\n")
		}
		b.WriteString("    loadbalance\n    reload\n}\n")
	}
	b.WriteString(".:53 {\n    errors\n    health {\n       lameduck 5s\n    }\n    ready\n")
	block(&b, d.CoreDNS.AdditionalConfigs)
	block(&b, d.CoreDNS.RewriteBlock)
	b.WriteString("    kubernetes " + c.Spec.Kubernetes.ClusterName + " in-addr.arpa ip6.arpa {\n       pods insecure\n       fallthrough in-addr.arpa ip6.arpa\n       ttl 30\n    }\n    prometheus :9153\n")
	etcHosts(&b, d.DNSEtcHosts)
	up := "/etc/resolv.conf"
	if len(d.CoreDNS.UpstreamDNSServers) > 0 {
		up = strings.Join(d.CoreDNS.UpstreamDNSServers, " ")
	}
	b.WriteString("    forward . " + up + " {\n       max_concurrent 1000\n    }\n    cache 30 {\n       disable success " +
		c.Spec.Kubernetes.ClusterName + "\n       disable denial " + c.Spec.Kubernetes.ClusterName + "\n    }\n    loop\n    reload\n    loadbalance\n}\n")
	return b.String()
}

// etcHosts writes lines in the format of /etc/hosts. Each block of a zone has them: a block answers all names
// of its zone, and the block of all other names none of them.
func etcHosts(b *strings.Builder, lines string) {
	if lines = strings.TrimSpace(lines); lines == "" {
		return
	}
	b.WriteString("    hosts {\n")
	for line := range strings.Lines(lines) {
		b.WriteString("       " + strings.TrimSpace(line) + "\n")
	}
	b.WriteString("       fallthrough\n    }\n")
}

func block(b *strings.Builder, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if s := strings.TrimRight(line, "\n "); s != "" {
			b.WriteString("    " + s + "\n")
		}
	}
}

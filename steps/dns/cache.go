package dns

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// object is a piece of a Kubernetes document.
type object = map[string]any

var cacheNeeds = []manifest.Need{{Kind: manifest.Image, Name: part.NodeCache}}

// Cache runs the DNS cache on each node, to which the kubelets direct their pods. A changed
// configuration is read by the running pods, within two minutes: until then they answer by the
// earlier one, and a node is not without name resolution meanwhile.
func Cache(c *manifest.Cluster) steps.Step {
	return kubectl.Apply("kubernetes.install-dns-cache", cacheNeeds, cacheManifest(c))
}

// WaitCache waits until the DNS cache runs on all nodes.
func WaitCache(c *manifest.Cluster) steps.Step {
	return kubectl.WaitFor("kubernetes.wait-dns-cache", cacheNeeds, cacheManifest(c))
}

func cacheManifest(c *manifest.Cluster) kubectl.Body {
	return func(_ context.Context, h *steps.Host) ([]byte, error) {
		pin, err := h.Image(cacheNeeds[0])
		if err != nil {
			return nil, err
		}
		meta := object{"name": part.NodeCache, "namespace": "kube-system", "labels": object{"k8s-app": part.NodeCache}}
		var b bytes.Buffer
		e := yaml.NewEncoder(&b)
		e.SetIndent(2)
		for _, doc := range []object{
			{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "automountServiceAccountToken": false},
			// The program looks at this file every ten seconds, and CoreDNS at what the program makes of it.
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": object{"Corefile": CacheCorefile(c)}},
			{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta, "spec": cacheDaemonSet(pin.Reference)},
		} {
			if err := e.Encode(doc); err != nil {
				return nil, err
			}
		}
		return b.Bytes(), e.Close()
	}
}

// cacheDaemonSet returns the specification of the pods. Flags and paths are those of
// cmd/node-cache/main.go of kubernetes/dns.
func cacheDaemonSet(image string) object {
	label := object{"k8s-app": part.NodeCache}
	container := object{
		"name": "node-cache", "image": image,
		"args": []string{
			"-localip", part.NodeCacheAddress, "-conf", "/etc/Corefile",
			// Rules that exempt its packets from connection tracking would stay on a host after the program
			// was killed, and they are not of kube-proxy's mode nftables.
			"-setupiptables=false",
			// Between two pods of it a query is refused at once. Without the interface it would leave the node.
			"-skipteardown=true",
			"-metrics-listen-address", "127.0.0.1:" + strconv.Itoa(part.NodeCacheOwnMetricsPort),
		},
		"resources": object{"requests": object{"cpu": "25m", "memory": "5Mi"}},
		"securityContext": object{
			"allowPrivilegeEscalation": false,
			"capabilities":             object{"drop": []string{"ALL"}, "add": []string{"NET_ADMIN", "NET_BIND_SERVICE"}},
		},
		"livenessProbe": object{
			"httpGet":             object{"host": part.NodeCacheAddress, "path": "/health", "port": part.NodeCacheHealthPort},
			"initialDelaySeconds": 60, "timeoutSeconds": 5,
		},
		"readinessProbe": object{
			"httpGet":       object{"host": part.NodeCacheAddress, "path": "/health", "port": part.NodeCacheHealthPort},
			"periodSeconds": 5, "timeoutSeconds": 5,
		},
		"volumeMounts": []object{{"name": "config", "mountPath": "/etc/coredns"}},
	}
	return object{
		"selector":       object{"matchLabels": label},
		"updateStrategy": object{"rollingUpdate": object{"maxUnavailable": "10%"}},
		"template": object{
			"metadata": object{"labels": label},
			"spec": object{
				"serviceAccountName": part.NodeCache, "automountServiceAccountToken": false,
				"priorityClassName": "system-node-critical", "hostNetwork": true,
				"dnsPolicy":                     "Default", // the node's name servers, and not the cache itself
				"tolerations":                   []object{{"operator": "Exists"}},
				"terminationGracePeriodSeconds": 5,
				"containers":                    []object{container},
				"volumes": []object{{"name": "config", "configMap": object{
					"name": part.NodeCache, "items": []object{{"key": "Corefile", "path": "Corefile.base"}},
				}}},
			},
		},
	}
}

// CacheCorefile returns the configuration of the DNS cache. Names of the cluster are asked from
// CoreDNS by TCP, which loses no packet. All other names are asked from CoreDNS too, so that the
// settings of spec.dns hold for them; if CoreDNS does not answer, from its upstream servers.
func CacheCorefile(c *manifest.Cluster) string {
	d, service := c.Spec.DNS, part.ClusterDNS(c)
	metrics := part.NodeCacheAddress + ":" + strconv.Itoa(part.NodeCacheMetricsPort)
	var b strings.Builder
	begin := func(zones, cache string) {
		b.WriteString(zones + " {\n    errors\n" + cache + "    reload\n    bind " + part.NodeCacheAddress + "\n")
	}
	seconds := func(n int) string {
		if n == 0 { // CoreDNS rejects a zero
			return ""
		}
		return "    cache " + strconv.Itoa(n) + "\n"
	}
	for _, z := range d.NodeLocalDNS.ExternalZones {
		begin(strings.Join(z.Zones, " "), seconds(z.Cache))
		for _, r := range z.Rewrite {
			b.WriteString("    rewrite " + r + "\n")
		}
		etcHosts(&b, d.DNSEtcHosts)
		b.WriteString("    forward . " + strings.Join(z.Nameservers, " ") + "\n    prometheus " + metrics + "\n}\n")
	}
	begin(c.Spec.Kubernetes.ClusterName+":53 in-addr.arpa:53 ip6.arpa:53", "    cache {\n        success 9984 30\n        denial 9984 5\n    }\n")
	b.WriteString("    loop\n    forward . " + service + " {\n        force_tcp\n    }\n    prometheus " + metrics +
		"\n    health " + part.NodeCacheAddress + ":" + strconv.Itoa(part.NodeCacheHealthPort) + "\n}\n")
	begin(".:53", seconds(30))
	servers := append([]string{service}, d.CoreDNS.UpstreamDNSServers...)
	b.WriteString("    loop\n    forward . " + strings.Join(servers, " ") + " {\n        policy sequential\n    }\n    prometheus " + metrics + "\n}\n")
	return b.String()
}

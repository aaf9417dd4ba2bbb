package manifest

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Alias is a second spelling of a field; if From and To are the same, of its values. kubexm
// itself writes the first spelling.
type Alias struct {
	From  string            // the second spelling
	To    string            // the field it represents
	Words map[string]string // second spellings of values → values; "" means not set
	// Scalar is the field that a plain value sets, if To is a mapping.
	Scalar string
	Lines  bool // lines as in /etc/hosts are accepted as well
	// Runtime is the only spec.runtime.type with which From means To; "" is any type.
	Runtime string
}

// Aliases lists all second spellings, in the order in which moveAliases moves them.
func Aliases() []Alias {
	return []Alias{
		{From: "spec.kubernetes.containerRuntime", To: "spec.runtime", Scalar: "spec.runtime.type"},
		{From: "spec.runtime.type", To: "spec.runtime.type", Words: map[string]string{"isula": "isulad", "crio": "cri-o"}},
		{From: "spec.runtime.containerd.version", To: "spec.runtime.version", Runtime: "containerd"},
		{From: "spec.runtime.docker.version", To: "spec.runtime.version", Runtime: "docker"},
		{From: "spec.runtime.cri-o.version", To: "spec.runtime.version", Runtime: "cri-o"},
		{From: "spec.runtime.isulad.version", To: "spec.runtime.version", Runtime: "isulad"},
		{From: "spec.registry.containerdDataDir", To: "spec.runtime.containerd.dataDir"},
		{From: "spec.registry.dockerDataDir", To: "spec.runtime.docker.dataDir"},
		{From: "spec.controlPlaneEndpoint.externalLoadBalancer", To: "spec.loadBalancer.external.type", Words: map[string]string{"kubexm": "kubexm-kh", "": ""}},
		{From: "spec.controlPlaneEndpoint.internalLoadbalancer", To: "spec.loadBalancer.internal.type"},
		{From: "spec.controlPlaneEndpoint.internalLoadBalancer", To: "spec.loadBalancer.internal.type"},
		{From: "spec.controlPlaneEndpoint.internalLoadBalancerType", To: "spec.loadBalancer.internal.type"},
		{From: "spec.controlPlaneEndpoint.lb_address", To: "spec.controlPlaneEndpoint.address"},
		{From: "spec.loadBalancer.vip", To: "spec.controlPlaneEndpoint.address"},
		{From: "spec.highAvailability.keepalived", To: "spec.loadBalancer.external.keepalived"},
		{From: "spec.highAvailability.kubevip.vip", To: "spec.controlPlaneEndpoint.address"},
		{From: "spec.highAvailability.kubevip", To: "spec.loadBalancer.internal.kubeVip"},
		{From: "spec.kubernetes.apiserver", To: "spec.kubernetes.apiServer"},
		{From: "spec.kubernetes.apiserverCertExtraSans", To: "spec.kubernetes.apiServer.certSANs"},
		{From: "spec.kubernetes.kubeletArgs", To: "spec.kubernetes.kubelet.extraArgs"},
		{From: "spec.kubernetes.proxyMode", To: "spec.kubernetes.kubeProxy.mode"},
		{From: "spec.kubernetes.masqueradeAll", To: "spec.kubernetes.kubeProxy.masqueradeAll"},
		{From: "spec.kubernetes.kubeProxyConfiguration", To: "spec.kubernetes.kubeProxy"},
		{From: "spec.kubernetes.nodelocaldns", To: "spec.dns.nodelocaldns"},
		{From: "spec.etcd.externalConfig", To: "spec.etcd.external"},
		{From: "spec.etcd.local.extraArgs", To: "spec.etcd.extraArgs"},
		{From: "spec.etcd.nodes", To: "spec.roleGroups.etcd"},
		{From: "spec.network.podCidr", To: "spec.network.kubePodsCIDR"},
		{From: "spec.network.serviceCidr", To: "spec.network.kubeServiceCIDR"},
		{From: "spec.extra.etcdresolve", To: "spec.extra.resolves"},
		{From: "spec.host", To: "spec.extra.hosts", Lines: true},
		{From: "spec.addons.url", To: "spec.addons.source"},
		{From: "spec.addons.path", To: "spec.addons.source"},
		{From: "spec.addons.type", To: "spec.addons.type", Words: map[string]string{"chart": "helm"}},
	}
}

// moveAliases moves the value of every second spelling to its field.
func (d *config) moveAliases() {
	addons := document.Lookup(d.Root(), "spec", "addons")
	for _, a := range Aliases() {
		from, inAddon := strings.CutPrefix(a.From, "spec.addons.")
		if !inAddon {
			d.move(d.Root(), a, "")
			continue
		}
		if addons == nil || addons.Kind != yaml.SequenceNode {
			continue
		}
		a.From, a.To = from, strings.TrimPrefix(a.To, "spec.addons.")
		for i, n := range addons.Content {
			if n.Kind == yaml.MappingNode {
				d.move(n, a, document.Indexed("spec.addons", i)+".")
			}
		}
	}
}

func (d *config) move(root *yaml.Node, a Alias, prefix string) {
	from := strings.Split(a.From, ".")
	n := document.Lookup(root, from...)
	if n == nil {
		return
	}
	if word, ok := a.Words[n.Value]; ok && n.Kind == yaml.ScalarNode {
		n.Value = word
	}
	if a.From == a.To {
		return
	}
	key := document.Remove(root, from)
	if n.Kind == yaml.ScalarNode && n.Value == "" {
		return
	}
	if kind := runtimeType(root); a.Runtime != "" && a.Runtime != kind {
		if slices.Contains(runtimes(), kind) { // else the type itself is reported
			d.Add(Error, key, a.From, "is the version of "+a.Runtime+", but the runtime is "+kind, "leave it out, or write spec.runtime.type: "+a.Runtime)
		}
		return
	}
	to := a.To
	switch {
	case a.Scalar != "" && n.Kind == yaml.ScalarNode:
		to = a.Scalar
	case a.Lines && n.Kind == yaml.ScalarNode:
		n = hostLines(n)
	}
	d.Put(root, strings.Split(to, "."), key, n, prefix+a.From, prefix+to)
}

// runtimeType returns spec.runtime.type or its default.
func runtimeType(root *yaml.Node) string {
	if n := document.Lookup(root, "spec", "runtime", "type"); n != nil && n.Value != "" {
		return n.Value
	}
	return "containerd"
}

// runtimes returns the values of spec.runtime.type.
func runtimes() []string { return words[Runtime]("Type", "enum") }

// hostLines converts lines as in /etc/hosts to entries of spec.extra.hosts.
func hostLines(n *yaml.Node) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Line: n.Line, Column: n.Column}
	text := func(s string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Line: n.Line, Column: n.Column}
	}
	for line := range strings.Lines(n.Value) {
		words := strings.Fields(line)
		for _, name := range words[min(1, len(words)):] {
			list.Content = append(list.Content, &yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Column: n.Column,
				Content: []*yaml.Node{text("domain"), text(name), text("address"), text(words[0])}})
		}
	}
	return list
}

// SortedWords lists the second spellings of values, without the empty one.
func (a Alias) SortedWords() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a.Words)), func(w string) bool { return w == "" })
}

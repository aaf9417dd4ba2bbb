package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Alias is a second spelling of a field, or, where From and To are the same, of
// its values. The first spelling is the one that kubexm writes itself.
type Alias struct {
	From  string            // the second spelling
	To    string            // the field it stands for
	Words map[string]string // values that are spelled otherwise there; an empty one stands for nothing
	// Scalar is the field that a plain value fills, where To is a mapping.
	Scalar string
	Lines  bool // lines as in /etc/hosts are taken too
	// Runtime is the spec.runtime.type under which alone the spelling means To.
	Runtime string
}

// Aliases lists every second spelling that is accepted, in the order in which
// they are put in place.
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

// moveAliases puts every second spelling where its field is.
func (d *document) moveAliases() {
	_, _, addons := lookup(d.root, []string{"spec", "addons"})
	for _, a := range Aliases() {
		from, inAddon := strings.CutPrefix(a.From, "spec.addons.")
		if !inAddon {
			d.move(d.root, a, "")
			continue
		}
		if addons == nil || addons.Kind != yaml.SequenceNode {
			continue
		}
		a.From, a.To = from, strings.TrimPrefix(a.To, "spec.addons.")
		for i, n := range addons.Content {
			if n.Kind == yaml.MappingNode {
				d.move(n, a, indexed("spec.addons", i)+".")
			}
		}
	}
}

func (d *document) move(root *yaml.Node, a Alias, prefix string) {
	from := strings.Split(a.From, ".")
	parent, at, n := lookup(root, from)
	if n == nil {
		return
	}
	if word, ok := a.Words[n.Value]; ok && n.Kind == yaml.ScalarNode {
		n.Value = word
	}
	if a.From == a.To {
		return
	}
	key := parent.Content[at]
	parent.Content = slices.Delete(parent.Content, at, at+2)
	prune(root, from[:len(from)-1])
	if n.Kind == yaml.ScalarNode && n.Value == "" {
		return
	}
	if kind := runtimeType(root); a.Runtime != "" && a.Runtime != kind {
		if slices.Contains(runtimes(), kind) { // else the type is the problem
			d.add(Error, key, a.From, "is the version of "+a.Runtime+", and the runtime is "+kind, "leave it out, or write spec.runtime.type: "+a.Runtime)
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
	d.insert(root, strings.Split(to, "."), key, n, prefix+a.From, prefix+to)
}

// runtimeType is what spec.runtime.type says, the default included.
func runtimeType(root *yaml.Node) string {
	if _, _, n := lookup(root, []string{"spec", "runtime", "type"}); n != nil && n.Value != "" {
		return n.Value
	}
	return "containerd"
}

// runtimes are the words of spec.runtime.type.
func runtimes() []string { return words[Runtime]("Type", "enum") }

// lookup finds the value at a path of mappings, with the mapping that holds it
// and the place of its key there.
func lookup(n *yaml.Node, path []string) (parent *yaml.Node, at int, value *yaml.Node) {
	for len(path) > 0 {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n.Kind != yaml.MappingNode {
			return nil, 0, nil
		}
		found := false
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == path[0] {
				parent, at, value, found = n, i, n.Content[i+1], true
				break
			}
		}
		if !found {
			return nil, 0, nil
		}
		n, path = value, path[1:]
	}
	return parent, at, value
}

// prune removes mappings that a move left empty: spec.highAvailability is no
// field, only its parts are second spellings.
func prune(root *yaml.Node, path []string) {
	for len(path) > 1 {
		parent, at, n := lookup(root, path)
		if n == nil || n.Kind != yaml.MappingNode || len(n.Content) > 0 {
			return
		}
		parent.Content = slices.Delete(parent.Content, at, at+2)
		path = path[:len(path)-1]
	}
}

// insert puts n at path, making the mappings on the way. What stands there
// already has to say the same, or be a mapping that can take n's fields.
func (d *document) insert(root *yaml.Node, path []string, key, n *yaml.Node, from, to string) {
	for i, name := range path {
		_, _, next := lookup(root, []string{name})
		switch {
		case next == nil && i == len(path)-1:
			k := *key
			k.Value = name
			root.Content = append(root.Content, &k, n)
			d.moved[to] = from
			return
		case next == nil:
			k := *key
			k.Value = name
			next = &yaml.Node{Kind: yaml.MappingNode, Line: key.Line, Column: key.Column}
			root.Content = append(root.Content, &k, next)
			d.made[strings.TrimSuffix(to, "."+strings.Join(path[i+1:], "."))] = from
		case i == len(path)-1:
			d.merge(next, n, key, from, to)
			return
		}
		root = next
	}
}

// merge adds n to what stands under the first spelling.
func (d *document) merge(have, n, key *yaml.Node, from, to string) {
	if have.Kind == yaml.MappingNode && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			d.insert(have, []string{name}, n.Content[i], n.Content[i+1], join(from, name), join(to, name))
		}
		return
	}
	if !equalNodes(have, n) {
		d.add(Error, key, from, fmt.Sprintf("is the same field as %s on line %d, and says something else", to, have.Line), "keep one of the two")
	}
}

func equalNodes(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	return slices.EqualFunc(a.Content, b.Content, equalNodes)
}

// hostLines turns lines as in /etc/hosts into entries of spec.extra.hosts.
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

// SortedWords lists the values that are spelled otherwise, but for the empty one.
func (a Alias) SortedWords() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a.Words)), func(w string) bool { return w == "" })
}

package cluster

import (
	"context"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
)

// fetched reads the administrator's kubeconfig of a master and adapts it for the workdir
// host. Like FetchKubeconfig it returns *KubeconfigError for a file that kubexm refuses.
func fetched(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]byte, error) {
	text, err := h.ReadFile(ctx, kubectl.AdminConf)
	if err != nil {
		return nil, err
	}
	ca, err := h.ReadFile(ctx, controlplane.AuthorityFile)
	if err != nil {
		return nil, err
	}
	out, err := operatorConf(text, ca, operatorEndpoint(c, h))
	if err != nil {
		return nil, err
	}
	return out, sameAuthority(KubeconfigPath(h.Workdir), out)
}

// Kubeconfig returns the administrator's kubeconfig of a cluster as FetchKubeconfig
// writes it. Cluster, user and context are named after the cluster, so that one file can
// contain those of several clusters.
func Kubeconfig(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]byte, error) {
	text, err := fetched(ctx, c, h)
	if err != nil {
		return nil, err
	}
	k, err := readConf(text)
	if err != nil {
		return nil, err
	}
	name := c.Metadata.Name
	k.Clusters[0].Name, k.Users[0].Name, k.Contexts[0].Name, k.Current = name, name+"-admin", name, name
	k.Contexts[0].Context.Cluster, k.Contexts[0].Context.User = name, name+"-admin"
	return yaml.Marshal(k)
}

// MergeKubeconfig merges the kubeconfig from into the kubeconfig into, and returns the
// result. Cluster, user and context of from replace those of the same names, and its
// context becomes the current one. If into is empty, the result is from.
func MergeKubeconfig(into, from []byte) ([]byte, error) {
	var to, add yaml.Node
	if err := yaml.Unmarshal(into, &to); err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if err := yaml.Unmarshal(from, &add); err != nil {
		return nil, err
	}
	if len(to.Content) == 0 {
		return from, nil
	}
	root, more := to.Content[0], add.Content[0]
	if kind := field(root, "kind"); root.Kind != yaml.MappingNode || kind == nil || kind.Value != "Config" {
		return nil, errors.New("not a kubeconfig: it has no kind: Config")
	}
	for _, list := range []string{"clusters", "users", "contexts"} {
		at := field(root, list)
		if at == nil || at.Kind != yaml.SequenceNode {
			at = &yaml.Node{Kind: yaml.SequenceNode}
			setField(root, list, at)
		}
		at.Style = 0
		for _, entry := range field(more, list).Content {
			setEntry(at, entry)
		}
	}
	setField(root, "current-context", field(more, "current-context"))
	return yaml.Marshal(&to)
}

// field returns the value of a key of a mapping; nil if it has none.
func field(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func setField(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
}

// setEntry adds a named entry to a list, or replaces the one of that name.
func setEntry(list, entry *yaml.Node) {
	name := field(entry, "name").Value
	for i, x := range list.Content {
		if n := field(x, "name"); n != nil && n.Value == name {
			list.Content[i] = entry
			return
		}
	}
	list.Content = append(list.Content, entry)
}

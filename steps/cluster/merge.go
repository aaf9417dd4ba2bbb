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

// fetched is the administrator's kubeconfig of a master, for the machine that kubexm
// runs on. It is refused with *ErrKubeconfig where FetchKubeconfig refuses it.
func fetched(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]byte, error) {
	text, err := h.ReadFile(ctx, kubectl.AdminConf)
	if err != nil {
		return nil, err
	}
	ca, err := h.ReadFile(ctx, controlplane.AuthorityFile)
	if err != nil {
		return nil, err
	}
	here, err := operatorConf(text, ca, endpointFromHere(c, h))
	if err != nil {
		return nil, err
	}
	return here, sameAuthority(KubeconfigPath(h.Workdir), here)
}

// Kubeconfig gives the administrator's kubeconfig of a cluster as FetchKubeconfig
// writes it, with cluster, user and context called as the cluster is: those of several
// clusters can be together in one file.
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

// MergeKubeconfig puts the cluster, the user and the context of one kubeconfig into
// another, in the place of those that have the same names, and makes its context the
// current one. An empty one becomes the first.
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

// field gives the value of a key of a mapping; nil where there is none.
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

// setEntry puts a named entry into a list, in the place of the one of that name.
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

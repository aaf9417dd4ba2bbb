package kubeadm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// clusterConfiguration is the key of ConfigMap kube-system/kubeadm-config that kubeadm reads
// when a node joins and when it upgrades a cluster.
const clusterConfiguration = "ClusterConfiguration"

// UpdateConfig updates the configuration that kubeadm stores in the cluster, so that it agrees
// with the masters and etcd members of c: the names and addresses in the certificates of API
// servers (apiServer.certSANs), and the endpoints of an etcd that kubeadm does not run. It
// changes no other field. It runs on a master.
func UpdateConfig(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.update-config", Timeout: time.Minute, Retry: steps.Retry{Times: 5, Wait: 3 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			change, err := readConfigChange(ctx, c, h)
			if runner.Refused(err) {
				return false, nil
			}
			return err == nil && change == nil, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			change, err := readConfigChange(ctx, c, h)
			if err != nil || change == nil {
				return err
			}
			// A replacement with the version that was read fails if somebody else changed it.
			return kubectl.Send(ctx, h, change, "--request-timeout=10s", "replace", "-f", "-")
		},
	}
}

// readConfigChange returns the ConfigMap with the changes of UpdateConfig; nil if there are none.
func readConfigChange(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]byte, error) {
	out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "-n", "kube-system", "get", "configmap/kubeadm-config", "-o", "json")
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		return nil, fmt.Errorf("configmap kubeadm-config: %w", err)
	}
	data, _ := object["data"].(map[string]any)
	was, _ := data[clusterConfiguration].(string)
	now, err := updatedConfig(c, was)
	if err != nil {
		return nil, steps.Advise(fmt.Errorf("configmap kubeadm-config: %w", err), "see kubectl -n kube-system get configmap kubeadm-config -o yaml on %s", h.Name)
	}
	if now == was {
		return nil, nil
	}
	data[clusterConfiguration] = now
	return json.Marshal(object)
}

// updatedConfig returns the text of a ClusterConfiguration with the fields of UpdateConfig.
// Without a difference it returns the text itself.
func updatedConfig(c *manifest.Cluster, text string) (string, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return "", err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return "", errors.New("it has no " + clusterConfiguration)
	}
	changed := setList(doc.Content[0], controlplane.SANs(c), "apiServer", "certSANs")
	if part.StoreOf(c).Kind == part.Service {
		changed = setList(doc.Content[0], part.StoreOf(c).Endpoints, "etcd", "external", "endpoints") || changed
	}
	if !changed {
		return text, nil
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&doc), e.Close()); err != nil {
		return "", err
	}
	return b.String(), nil
}

// setList sets the list of words at a path of keys, and reports whether it differed. Missing
// mappings are added.
func setList(in *yaml.Node, want []string, path ...string) bool {
	for _, key := range path[:len(path)-1] {
		in = valueOf(in, key, yaml.MappingNode)
	}
	list := valueOf(in, path[len(path)-1], yaml.SequenceNode)
	var have []string
	for _, item := range list.Content {
		have = append(have, item.Value)
	}
	if slices.Equal(have, want) {
		return false
	}
	list.Content = nil
	for _, word := range want {
		item := &yaml.Node{}
		item.SetString(word)
		list.Content = append(list.Content, item)
	}
	return true
}

// valueOf returns the value of a key of a mapping, which is added with a kind if it does not exist
// or has another one.
func valueOf(in *yaml.Node, key string, kind yaml.Kind) *yaml.Node {
	for i := 0; i+1 < len(in.Content); i += 2 {
		if in.Content[i].Value != key {
			continue
		}
		if v := in.Content[i+1]; v.Kind != kind {
			*v = yaml.Node{Kind: kind}
		}
		return in.Content[i+1]
	}
	name, value := &yaml.Node{}, &yaml.Node{Kind: kind}
	name.SetString(key)
	in.Content = append(in.Content, name, value)
	return value
}

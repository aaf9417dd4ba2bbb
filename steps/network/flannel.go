package network

import (
	"encoding/json"
	"errors"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
)

// Flannel applies flannel's manifest with the cluster's pod ranges and backend.
func Flannel(c *manifest.Cluster) steps.Step {
	return apply(c, "network.install-flannel", "flannel", flannelFor)
}

// WaitFlannel waits until flannel runs on all nodes: nodes are Ready as soon as its CNI plugin is
// configured, but pods get no address before the daemon runs.
func WaitFlannel() steps.Step { return wait("network.wait-flannel", "flannel") }

// flannelFor returns flannel's manifest with the settings of the config.
func flannelFor(c *manifest.Cluster, text []byte) ([]byte, error) {
	conf := map[string]any{"EnableNFTables": false, "Backend": map[string]any{"Type": backend(c)}}
	four, six := part.PodRanges(c)
	if six != "" {
		conf["EnableIPv6"], conf["IPv6Network"] = true, six
	}
	if four == "" {
		conf["EnableIPv4"] = false
	} else {
		conf["Network"] = four
	}
	net, err := json.MarshalIndent(conf, "", "  ")
	if err != nil {
		return nil, err
	}
	found := false
	out, err := editDocuments(text, func(doc *yaml.Node) error {
		if valueAt(doc, "kind") == "DaemonSet" {
			restrict(doc)
		}
		if valueAt(doc, "kind") != "ConfigMap" {
			return nil
		}
		n := nodeAt(doc, "data", "net-conf.json")
		if n == nil {
			return nil
		}
		found = true
		n.SetString(string(net) + "\n")
		return nil
	})
	if err == nil && !found {
		err = errors.New("flannel's manifest has no ConfigMap with net-conf.json")
	}
	return out, err
}

// restrict makes the file that flannel installs on each host readable only by root: cp gives
// a new file the mode of its source.
func restrict(daemonSet *yaml.Node) {
	volumes := nodeAt(daemonSet, "spec", "template", "spec", "volumes")
	if volumes == nil {
		return
	}
	for _, v := range volumes.Content {
		if c := nodeAt(v, "configMap"); c != nil && c.Kind == yaml.MappingNode && nodeAt(c, "defaultMode") == nil {
			c.Content = append(c.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: "defaultMode"}, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(0o600)})
		}
	}
}

// backend returns flannel's name of the backend.
func backend(c *manifest.Cluster) string { return c.Spec.Network.Flannel.Backend }

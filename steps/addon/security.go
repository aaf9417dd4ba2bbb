package addon

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// enforced is the label with a namespace's Pod Security level.
const enforced = "pod-security.kubernetes.io/enforce"

// levels are the Pod Security levels that the namespaces of kubexm's own add-ons need. The
// cluster's default level is spec.kubernetes.hardening.podSecurity. longhorn's manifest has
// no label, but its pods mount host folders; metallb's manifest has the same label itself.
var levels = map[string]string{"longhorn": "privileged", "metallb": "privileged"}

// admitted returns the manifest of an add-on with the level label that its namespaces need.
// A manifest that the config specifies by its source is not changed.
func admitted(a manifest.Addon, text []byte) ([]byte, error) {
	level := levels[a.Name]
	if level == "" || a.Source != "" {
		return text, nil
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	changed := false
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc yaml.Node
		if err := d.Decode(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", a.Name, err)
		}
		if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
			continue
		}
		if kind := child(doc.Content[0], "kind", 0); kind != nil && kind.Value == "Namespace" {
			labels := child(child(doc.Content[0], "metadata", yaml.MappingNode), "labels", yaml.MappingNode)
			if child(labels, enforced, 0) == nil {
				labels.Content = append(labels.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: enforced}, &yaml.Node{Kind: yaml.ScalarNode, Value: level})
				changed = true
			}
		}
		if err := e.Encode(&doc); err != nil {
			return nil, err
		}
	}
	if err := e.Close(); err != nil || !changed {
		return text, err
	}
	return out.Bytes(), nil
}

// child returns the value of a field. If the field is missing it is created with the given
// kind, unless kind is 0.
func child(n *yaml.Node, name string, kind yaml.Kind) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			if v := n.Content[i+1]; kind == 0 || v.Kind == kind {
				return v
			}
			n.Content[i+1] = &yaml.Node{Kind: kind} // it was null
			return n.Content[i+1]
		}
	}
	if kind == 0 {
		return nil
	}
	v := &yaml.Node{Kind: kind}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, v)
	return v
}

package addon

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// enforced is the label by which a namespace says which pods it admits.
const enforced = "pod-security.kubernetes.io/enforce"

// levels are the Pod Security levels that namespaces of the matrix's add-ons need. The
// cluster's own level is that of spec.kubernetes.hardening.podSecurity. longhorn's
// manifest has no label, and its pods mount folders of the host; metallb's has the same
// label itself.
var levels = map[string]string{"longhorn": "privileged", "metallb": "privileged"}

// admitted gives the manifest of an add-on with the level that its namespaces need. One
// that the config names by its source says so itself.
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

// child gives the value of a field; one of kind is made where there is none, unless
// kind is 0.
func child(n *yaml.Node, name string, kind yaml.Kind) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			if v := n.Content[i+1]; kind == 0 || v.Kind == kind {
				return v
			}
			n.Content[i+1] = &yaml.Node{Kind: kind} // null: a field without a value
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

package versions

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// Encode encodes a document after a header of comment lines. The document is sorted, with one
// line per simple release, so that a diff shows added and removed releases.
func (d *Document) Encode(header string) ([]byte, error) {
	complete := *d
	complete.APIVersion, complete.Kind = manifest.APIVersion, DocumentKind
	var root yaml.Node
	if err := root.Encode(&complete); err != nil {
		return nil, fmt.Errorf("encode the versions: %w", err)
	}
	if components := child(&root, "components"); components != nil {
		for i := 1; i < len(components.Content); i += 2 {
			releases := child(components.Content[i], "versions")
			for j := 1; releases != nil && j < len(releases.Content); j += 2 {
				if child(releases.Content[j], "images") == nil && child(releases.Content[j], "members") == nil {
					releases.Content[j].Style = yaml.FlowStyle
				}
			}
		}
	}
	var b bytes.Buffer
	b.WriteString(header)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&root); err != nil {
		return nil, fmt.Errorf("encode the versions: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("encode the versions: %w", err)
	}
	return b.Bytes(), nil
}

// child returns the value of a key in a mapping; nil if there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

package network

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// editDocuments decodes each document of a manifest, calls edit for its YAML tree, and
// encodes them all.
func editDocuments(text []byte, edit func(*yaml.Node) error) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n yaml.Node
		if err := d.Decode(&n); errors.Is(err, io.EOF) {
			return b.Bytes(), e.Close()
		} else if err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
		if len(n.Content) == 0 || n.Content[0].Kind != yaml.MappingNode {
			continue
		}
		if err := edit(n.Content[0]); err != nil {
			return nil, err
		}
		if err := e.Encode(&n); err != nil {
			return nil, err
		}
	}
}

// nodeAt returns the value at a path of keys; nil if it does not exist.
func nodeAt(n *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		if n == nil {
			return nil
		}
		var next *yaml.Node
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				next = n.Content[i+1]
			}
		}
		if next == nil {
			return nil
		}
		n = next
	}
	return n
}

func valueAt(n *yaml.Node, path ...string) string {
	if v := nodeAt(n, path...); v != nil {
		return v.Value
	}
	return ""
}

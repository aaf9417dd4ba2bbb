package document

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// free decodes a mapping without a schema, such as the values of a chart.
func (w *walker) free(n *yaml.Node, v reflect.Value, path string, depth int) {
	m := map[string]any{}
	if n.Kind != yaml.MappingNode {
		w.Add(Error, n, path, "is "+KindOf(n)+", but must be a mapping", "write name: value, one per line")
		return
	}
	if !w.freeKeys(n, path, path, depth) {
		return
	}
	if err := n.Decode(&m); err != nil {
		w.Add(Error, n, path, "cannot be read as a mapping", "check its keys, tags and anchors")
		return
	}
	v.Set(reflect.ValueOf(m))
}

// freeKeys adds errors for repeated keys, for keys that are not text and for excessive nesting;
// yaml's own messages are less clear. Nesting is reported at the path top, because deeper paths
// would be as long as the nesting.
func (w *walker) freeKeys(n *yaml.Node, path, top string, depth int) bool {
	n = Follow(n)
	if w.nodes++; w.nodes > maxNodes || depth > maxDepth {
		w.Add(Error, n, top, "is nested too deeply or has too many values", "write it without anchors")
		return false
	}
	seen := map[string]int{}
	for i, c := range n.Content {
		at := path
		if n.Kind == yaml.MappingNode {
			key := n.Content[i-i%2]
			at = Join(path, key.Value)
			if i%2 == 0 {
				line, twice := seen[key.Value]
				seen[key.Value] = key.Line
				switch {
				case key.Kind != yaml.ScalarNode:
					w.Add(Error, key, path, "has a key that is "+KindOf(key), "write a plain name")
					return false
				case twice:
					w.Add(Error, key, at, fmt.Sprintf("is set twice, first on line %d", line), "keep one of the two")
					return false
				}
				continue
			}
		}
		if !w.freeKeys(c, at, top, depth+1) {
			return false
		}
	}
	return true
}

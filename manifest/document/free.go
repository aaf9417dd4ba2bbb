package document

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// free decodes what has no schema, as a chart's values.
func (w *walker) free(n *yaml.Node, v reflect.Value, path string, depth int) {
	m := map[string]any{}
	if n.Kind != yaml.MappingNode {
		w.Add(Error, n, path, "is "+KindOf(n)+", and has to be a mapping", "write name: value, one a line")
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

// freeKeys reports keys that stand twice or are no text, and what is nested without
// end, in words that yaml's own errors lack. The latter is reported of top: below it a
// path is as deep as the nesting.
func (w *walker) freeKeys(n *yaml.Node, path, top string, depth int) bool {
	n = Follow(n)
	if w.nodes++; w.nodes > maxNodes || depth > maxDepth {
		w.Add(Error, n, top, "is nested too deep or repeated too often", "write it without anchors")
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
					w.Add(Error, key, at, fmt.Sprintf("stands twice, first on line %d", line), "keep one of the two")
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

package document

import (
	"reflect"

	"go.yaml.in/yaml/v3"
)

// mapping decodes a mapping whose names the user chooses.
func (w *walker) mapping(n *yaml.Node, v reflect.Value, path string, depth int) {
	if n.Kind != yaml.MappingNode {
		w.Add(Error, n, path, "is "+KindOf(n)+", but must be a mapping", "write name: value, one per line")
		return
	}
	out := reflect.MakeMap(v.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := Follow(n.Content[i])
		at := Join(path, key.Value)
		if key.Kind != yaml.ScalarNode {
			w.Add(Error, key, path, "has a key that is "+KindOf(key), "write a plain name")
			continue
		}
		if out.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			w.Add(Error, key, at, "is set twice", "keep one of the two")
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		w.value(n.Content[i+1], item, at, "", depth+1)
		w.nothing(Follow(n.Content[i+1]), item, at)
		out.SetMapIndex(reflect.ValueOf(key.Value), item)
	}
	v.Set(out)
}

// nothing handles a name without a value. For a text, such as a label, it means the empty
// text; for a switch it is an error.
func (w *walker) nothing(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!null" || n.Anchor != "" {
		return
	}
	if v.Kind() == reflect.Bool {
		w.Add(Error, n, path, "has no value", "write true or false")
		return
	}
	w.written[path] = true
}

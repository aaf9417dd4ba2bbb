package document

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// walker decodes nodes into Go values and collects all problems.
type walker struct {
	*Document
	nodes int
}

// value decodes n into v, the value at path; tag has the tags of its field.
func (w *walker) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag, depth int) {
	n = Follow(n)
	w.nodes++
	if w.nodes > maxNodes || depth > maxDepth {
		if w.nodes <= maxNodes+1 || depth == maxDepth+1 {
			w.Add(Error, n, path, "is nested too deeply or has too many values", "write it without anchors")
			w.nodes = maxNodes + 2
		}
		return
	}
	w.places[path] = n
	if n.Kind == yaml.ScalarNode && (w.lost(n, path) || n.Tag == "!!null") {
		return // not set, or not readable
	}
	w.written[path] = true
	switch read := w.schema.Types[v.Type()]; {
	case read != nil:
		read(w.Document, n, v, path)
	case v.Type() == anyMap:
		w.free(n, v, path, depth)
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		w.value(n, p.Elem(), path, tag, depth)
		v.Set(p)
	case v.CanAddr() && v.Addr().Type().Implements(textType):
		w.text(n, v, path)
	case v.Kind() == reflect.Struct:
		w.structure(n, v, path, depth)
	case v.Kind() == reflect.Slice:
		w.list(n, v, path, tag, depth)
	case v.Kind() == reflect.Map:
		w.mapping(n, v, path, depth)
	default:
		w.scalar(n, v, path, tag)
	}
}

// plainTags are the YAML tags that a value may have.
var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null"}

// lost adds an error for a value that begins with & or !, which YAML reads as an anchor or a
// tag. The problem does not contain the value, which may be a password.
func (w *walker) lost(n *yaml.Node, path string) bool {
	anchorAlone := n.Anchor != "" && n.Tag == "!!null"
	strange := n.Style&yaml.TaggedStyle != 0 && !slices.Contains(plainTags, n.Tag)
	if anchorAlone || strange {
		w.Add(Error, n, path, "begins with & or !, which YAML does not read as part of the value", "put quotes around it")
	}
	return anchorAlone || strange
}

// Follow returns the node that an alias refers to; n itself if it is not an alias.
func Follow(n *yaml.Node) *yaml.Node {
	for i := 0; n.Kind == yaml.AliasNode && n.Alias != nil && i < maxDepth; i++ {
		n = n.Alias
	}
	return n
}

// KindOf describes the kind of n: "a mapping", "a number".
func KindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "text"
}

func (w *walker) structure(n *yaml.Node, v reflect.Value, path string, depth int) {
	fields := Keys(v.Type())
	if n.Kind == yaml.ScalarNode {
		for _, f := range fields {
			if f.Tag.Get("scalar") == "true" {
				w.value(n, v.FieldByIndex(f.Index), Join(path, f.Name), f.Tag, depth+1)
				return
			}
		}
	}
	if read := w.schema.Short[v.Type()]; read != nil && n.Kind == yaml.ScalarNode {
		read(w.Document, n, v, path)
		return
	}
	if n.Kind != yaml.MappingNode {
		w.Add(Error, n, path, "is "+KindOf(n)+", but must be a mapping of fields", w.Explain(path))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := Follow(n.Content[i])
		if line, twice := seen[key.Value]; twice && key.Kind == yaml.ScalarNode {
			name, _ := nameOf(key)
			w.Add(Error, key, Join(path, name), fmt.Sprintf("is set twice, first on line %d", line), "keep one of the two")
			continue
		}
		seen[key.Value] = key.Line
		if f, ok := find(fields, key.Value); ok && key.Kind == yaml.ScalarNode {
			w.value(n.Content[i+1], v.FieldByIndex(f.Index), Join(path, f.Name), f.Tag, depth+1)
			continue
		}
		w.unknown(key, path, fields, n.Style&yaml.FlowStyle != 0 && isNull(n.Content[i+1]))
	}
}

// isNull reports whether n is an empty value.
func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
}

func find(fields []Key, name string) (Key, bool) {
	for _, f := range fields {
		if f.Name == name {
			return f, true
		}
	}
	return Key{}, false
}

func (w *walker) list(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag, depth int) {
	if n.Kind == yaml.ScalarNode && n.Value == "" {
		return // an empty text means an empty list
	}
	if n.Kind == yaml.MappingNode && v.Type().Elem().Kind() != reflect.Struct {
		w.Add(Error, n, path, "is a mapping, but must be a list", "write - value, one per line")
		return
	}
	items := []*yaml.Node{n} // a single value is a list of one
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	} else if sep := tag.Get("split"); sep != "" && n.Kind == yaml.ScalarNode {
		items = nil
		for part := range strings.SplitSeq(n.Value, sep) {
			c := *n
			c.Value = strings.TrimSpace(part)
			items = append(items, &c)
		}
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		at := Indexed(path, i)
		if x := Follow(item); x.Kind == yaml.ScalarNode && strings.TrimSpace(x.Value) == "" && out.Index(i).Kind() == reflect.String {
			w.Add(Error, x, at, "is empty", "write a value, or remove the entry")
			continue
		}
		w.value(item, out.Index(i), at, tag, depth+1)
	}
	v.Set(out)
}

func (w *walker) scalar(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.ScalarNode {
		w.Add(Error, n, path, "is "+KindOf(n)+", but must be "+typeWord(v.Type()), w.Explain(path))
		return
	}
	bad := func() {
		w.Add(Error, n, path, fmt.Sprintf("%q is not %s", Redact(n.Value), typeWord(v.Type())), w.Explain(path))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		if n.Tag != "!!bool" {
			bad()
			return
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil {
			bad()
			return
		}
		v.SetInt(i)
	default:
		w.Add(Error, n, path, "has a Go type that cannot be decoded: "+v.Type().String(), "")
		return
	}
	w.checkTags(n, v, path, tag)
}

func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "text"
}

// text decodes a type that implements encoding.TextUnmarshaler.
func (w *walker) text(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		w.Add(Error, n, path, "is "+KindOf(n)+", but must be text", w.Explain(path))
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			w.Add(Error, n, path, err.Error(), w.Explain(path))
		}
	}
}

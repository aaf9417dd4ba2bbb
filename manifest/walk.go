package manifest

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// field is one field of a config struct, with inlined structs unfolded.
type field struct {
	name  string // in the document
	tag   reflect.StructTag
	index []int
	typ   reflect.Type
	owner reflect.Type // the struct that declares it
}

// fieldsOf lists the fields that a mapping may hold.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case strings.Contains(opts, "inline"):
			for _, in := range fieldsOf(f.Type) {
				in.index = append([]int{i}, in.index...)
				out = append(out, in)
			}
		case name != "" && name != "-" && f.IsExported():
			out = append(out, field{name: name, tag: f.Tag, index: []int{i}, typ: f.Type, owner: t})
		}
	}
	return out
}

var (
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
	secretType = reflect.TypeFor[Secret]()
	argsType   = reflect.TypeFor[Args]()
	anyMap     = reflect.TypeFor[map[string]any]()
)

// walker fills Go values from nodes and collects every problem on the way.
type walker struct {
	*document
	nodes int
}

// value decodes n into v, which lies at path and has the tags of its field.
func (w *walker) value(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag, depth int) {
	n = w.follow(n)
	w.nodes++
	if w.nodes > maxNodes || depth > maxDepth {
		if w.nodes <= maxNodes+1 || depth == maxDepth+1 {
			w.add(Error, n, path, "is nested too deep or repeated too often", "write it without anchors")
			w.nodes = maxNodes + 2
		}
		return
	}
	w.places[path] = n
	if n.Kind == yaml.ScalarNode && (w.lost(n, path) || n.Tag == "!!null") {
		return // nothing written, or nothing that can be read
	}
	w.written[path] = true
	switch {
	case v.Type() == secretType:
		w.secret(n, v, path)
	case v.Type() == argsType:
		w.args(n, v, path)
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

// plainTags are the tags that a value may bear, though none needs to.
var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null"}

// lost reports a value of which YAML left something out: it begins with & or !,
// which to YAML names an anchor or a tag. What it was stays out of the problem:
// it may be a password.
func (w *walker) lost(n *yaml.Node, path string) bool {
	anchorAlone := n.Anchor != "" && n.Tag == "!!null"
	strange := n.Style&yaml.TaggedStyle != 0 && !slices.Contains(plainTags, n.Tag)
	if anchorAlone || strange {
		w.add(Error, n, path, "begins with & or !, and to YAML that is no part of the value", "put quotes around it")
	}
	return anchorAlone || strange
}

// follow gives what an alias stands for.
func (w *walker) follow(n *yaml.Node) *yaml.Node {
	for i := 0; n.Kind == yaml.AliasNode && n.Alias != nil && i < maxDepth; i++ {
		n = n.Alias
	}
	return n
}

func kindWord(n *yaml.Node) string {
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
	fields := fieldsOf(v.Type())
	if n.Kind == yaml.ScalarNode {
		for _, f := range fields {
			if f.tag.Get("scalar") == "true" {
				w.value(n, v.FieldByIndex(f.index), join(path, f.name), f.tag, depth+1)
				return
			}
		}
	}
	if v.Type() == reflect.TypeFor[Taint]() && n.Kind == yaml.ScalarNode {
		w.taint(n, v, path)
		return
	}
	if n.Kind != yaml.MappingNode {
		w.add(Error, n, path, "is "+kindWord(n)+", and has to be a mapping of fields", w.explain(path))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := w.follow(n.Content[i])
		if line, twice := seen[key.Value]; twice && key.Kind == yaml.ScalarNode {
			name, _ := nameOf(key)
			w.add(Error, key, join(path, name), fmt.Sprintf("stands twice, first on line %d", line), "keep one of the two")
			continue
		}
		seen[key.Value] = key.Line
		if f, ok := find(fields, key.Value); ok && key.Kind == yaml.ScalarNode {
			w.value(n.Content[i+1], v.FieldByIndex(f.index), join(path, f.name), f.tag, depth+1)
			continue
		}
		w.unknown(key, path, fields, n.Style&yaml.FlowStyle != 0 && isNull(n.Content[i+1]))
	}
}

// isNull tells whether nothing is written as a value.
func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
}

func find(fields []field, name string) (field, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

func (w *walker) list(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag, depth int) {
	if n.Kind == yaml.ScalarNode && n.Value == "" {
		return // an empty text is an empty list
	}
	if n.Kind == yaml.MappingNode && v.Type().Elem().Kind() != reflect.Struct {
		w.add(Error, n, path, "is a mapping, and has to be a list", "write - value, one a line")
		return
	}
	items := []*yaml.Node{n} // a single value where a list of one is meant
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
		at := indexed(path, i)
		if x := w.follow(item); x.Kind == yaml.ScalarNode && strings.TrimSpace(x.Value) == "" && out.Index(i).Kind() == reflect.String {
			w.add(Error, x, at, "is empty", "write a value, or take the entry out")
			continue
		}
		w.value(item, out.Index(i), at, tag, depth+1)
	}
	v.Set(out)
}

func (w *walker) scalar(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.ScalarNode {
		w.add(Error, n, path, "is "+kindWord(n)+", and has to be "+typeWord(v.Type()), w.explain(path))
		return
	}
	bad := func() {
		w.add(Error, n, path, fmt.Sprintf("%q is not %s", shown(n.Value), typeWord(v.Type())), w.explain(path))
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
		w.add(Error, n, path, "has a type that this program cannot read: "+v.Type().String(), "")
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

// text decodes a type that reads itself.
func (w *walker) text(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		w.add(Error, n, path, "is "+kindWord(n)+", and has to be text", w.explain(path))
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			w.add(Error, n, path, err.Error(), w.explain(path))
		}
	}
}

// secret never puts what it reads into a problem.
func (w *walker) secret(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		w.add(Error, n, path, "is "+kindWord(n)+", and has to be text", "write the secret, ${env:NAME} or file:PATH")
		return
	}
	s := NewSecret(n.Value)
	switch {
	case strings.HasPrefix(n.Value, "${") && s.Reference() == "":
		w.add(Error, n, path, "is no reference that kubexm knows", "write ${env:NAME} or file:PATH")
	case n.Value == "file:":
		w.add(Error, n, path, "names no file", "write file:PATH")
	case n.Value == mask:
		w.add(Error, n, path, "is ***, which stands for a secret that was left out", "write the secret, ${env:NAME} or file:PATH")
	}
	v.Set(reflect.ValueOf(s))
}

package manifest

import (
	"encoding"
	"fmt"
	"reflect"
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
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return // nothing written
	}
	w.written[path] = true
	switch {
	case v.Type() == secretType:
		w.secret(n, v, path)
	case v.Type() == argsType:
		w.args(n, v, path)
	case v.Type() == anyMap:
		w.free(n, v, path)
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
		w.add(Error, n, path, "is "+kindWord(n)+", and has to be a mapping of fields", "see `kubexm config explain "+plainPath(path)+"`")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := w.follow(n.Content[i])
		if line, twice := seen[key.Value]; twice {
			w.add(Error, key, join(path, key.Value), fmt.Sprintf("stands twice, first on line %d", line), "keep one of the two")
			continue
		}
		seen[key.Value] = key.Line
		if f, ok := find(fields, key.Value); ok {
			w.value(n.Content[i+1], v.FieldByIndex(f.index), join(path, f.name), f.tag, depth+1)
			continue
		}
		w.unknown(key, path, fields)
	}
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
		w.value(item, out.Index(i), fmt.Sprintf("%s[%d]", path, i), tag, depth+1)
	}
	v.Set(out)
}

func (w *walker) mapping(n *yaml.Node, v reflect.Value, path string, depth int) {
	if n.Kind != yaml.MappingNode {
		w.add(Error, n, path, "is "+kindWord(n)+", and has to be a mapping", "write name: value, one a line")
		return
	}
	out := reflect.MakeMap(v.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := w.follow(n.Content[i])
		at := join(path, key.Value)
		if key.Kind != yaml.ScalarNode {
			w.add(Error, key, path, "has a key that is "+kindWord(key), "write a plain name")
			continue
		}
		if out.MapIndex(reflect.ValueOf(key.Value)).IsValid() {
			w.add(Error, key, at, "stands twice", "keep one of the two")
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		w.value(n.Content[i+1], item, at, "", depth+1)
		out.SetMapIndex(reflect.ValueOf(key.Value), item)
	}
	v.Set(out)
}

func (w *walker) scalar(n *yaml.Node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.Kind != yaml.ScalarNode {
		w.add(Error, n, path, "is "+kindWord(n)+", and has to be "+typeWord(v.Type()), "see `kubexm config explain "+plainPath(path)+"`")
		return
	}
	bad := func() {
		w.add(Error, n, path, fmt.Sprintf("%q is not %s", shown(n.Value), typeWord(v.Type())), "see `kubexm config explain "+plainPath(path)+"`")
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		b, err := strconv.ParseBool(strings.ToLower(n.Value))
		if err != nil || (n.Tag != "!!bool" && n.Style != 0) {
			bad()
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64)
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
		w.add(Error, n, path, "is "+kindWord(n)+", and has to be text", "see `kubexm config explain "+plainPath(path)+"`")
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			w.add(Error, n, path, err.Error(), "see `kubexm config explain "+plainPath(path)+"`")
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
	if strings.HasPrefix(n.Value, "${") && s.Reference() == "" {
		w.add(Error, n, path, "is no reference that kubexm knows", "write ${env:NAME} or file:PATH")
	}
	v.Set(reflect.ValueOf(s))
}

// free decodes what has no schema of ours, as a chart's values.
func (w *walker) free(n *yaml.Node, v reflect.Value, path string) {
	m := map[string]any{}
	if n.Kind != yaml.MappingNode {
		w.add(Error, n, path, "is "+kindWord(n)+", and has to be a mapping", "write name: value, one a line")
		return
	}
	if err := n.Decode(&m); err != nil {
		w.add(Error, n, path, strings.TrimPrefix(err.Error(), "yaml: "), "")
		return
	}
	v.Set(reflect.ValueOf(m))
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	if strings.ContainsAny(name, ".[]/ ") {
		return path + "[" + strconv.Quote(name) + "]"
	}
	return path + "." + name
}

// shown keeps a value in a message short.
func shown(s string) string {
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

package manifest

import (
	"bytes"
	"cmp"
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest/document"
)

// secretPrefix is the prefix of environment variables that replace secrets in a config.
const secretPrefix = "KUBEXM_"

// Public returns the config without its secrets, as it is stored in a bundle. It has the
// fields of the document, without defaults and with second spellings replaced. A secret is
// replaced by ${env:KUBEXM_<PATH>}, and so is a file: reference, because the file is not in
// the bundle; an ${env:…} reference stays. Equal configs are equal bytes, and decoding them
// returns an equal Cluster except for the secrets.
func (c *Cluster) Public() ([]byte, error) {
	if c.public == nil {
		return nil, fmt.Errorf("this cluster was not read by Decode")
	}
	return slices.Clone(c.public), nil
}

// public encodes c before defaults are set.
func (d *config) public(c *Cluster) []byte {
	e := encoder{config: d, cluster: c, taken: map[string]int{}}
	n := e.node(reflect.ValueOf(c).Elem(), "")
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := cmp.Or(enc.Encode(n), enc.Close()); err != nil {
		d.Add(Error, nil, "", "cannot be encoded: "+err.Error(), "")
		return nil
	}
	return b.Bytes()
}

type encoder struct {
	*config
	cluster *Cluster
	taken   map[string]int // names of environment variables
}

// node returns the YAML of v, or nil if the document does not set it.
func (e *encoder) node(v reflect.Value, path string) *yaml.Node {
	t := v.Type()
	switch {
	case t == secretType:
		return e.secretNode(v, path)
	case t == argsType:
		return argsNode(v)
	case t == anyMap:
		return freeNode(v)
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return e.node(v.Elem(), path)
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		if v.IsZero() && !e.Written(path) {
			return nil
		}
		m, _ := v.Interface().(encoding.TextMarshaler)
		text, err := m.MarshalText()
		if err != nil {
			return nil
		}
		return textNode(string(text))
	}
	switch v.Kind() {
	case reflect.Struct:
		return e.structNode(v, path)
	case reflect.Slice:
		if v.Len() == 0 && (v.IsNil() || !e.Written(path)) {
			return nil
		}
		n := &yaml.Node{Kind: yaml.SequenceNode} // [] differs from a field that is not set
		for i := range v.Len() {
			item := e.node(v.Index(i), document.Indexed(path, i))
			if item == nil {
				item = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
			}
			n.Content = append(n.Content, item)
		}
		return n
	case reflect.Map:
		return e.mapNode(v, path)
	}
	if v.IsZero() && !e.Written(path) {
		return nil
	}
	n := &yaml.Node{}
	if n.Encode(v.Interface()) != nil {
		return nil
	}
	return n
}

func (e *encoder) structNode(v reflect.Value, path string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range document.Keys(v.Type()) {
		if child := e.node(v.FieldByIndex(f.Index), document.Join(path, f.Name)); child != nil {
			n.Content = append(n.Content, textNode(f.Name), child)
		}
	}
	if len(n.Content) > 0 {
		return n
	}
	if e.Written(path) { // storage.openebs: {} has an effect
		n.Style = yaml.FlowStyle
		return n
	}
	return nil
}

func (e *encoder) mapNode(v reflect.Value, path string) *yaml.Node {
	if v.Len() == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, k := range v.MapKeys() {
		child := e.node(v.MapIndex(k), document.Join(path, k.String()))
		if child == nil {
			child = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		}
		n.Content = append(n.Content, textNode(k.String()), child)
	}
	sortPairs(n)
	return n
}

// sortPairs sorts a mapping by its keys.
func sortPairs(n *yaml.Node) {
	pairs := slices.Collect(slices.Chunk(slices.Clone(n.Content), 2))
	slices.SortFunc(pairs, func(a, b []*yaml.Node) int { return cmp.Compare(a[0].Value, b[0].Value) })
	n.Content = slices.Concat(pairs...)
}

func textNode(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	if s == "" || n.Style == 0 {
		var enc yaml.Node
		if enc.Encode(s) == nil { // adds quotes if YAML would read it as another type
			return &enc
		}
	}
	return n
}

func argsNode(v reflect.Value) *yaml.Node {
	if v.Len() == 0 {
		return nil
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range v.Len() {
		if a, ok := v.Index(i).Interface().(Arg); ok {
			n.Content = append(n.Content, textNode(a.Name+"="+a.Value))
		}
	}
	return n
}

func freeNode(v reflect.Value) *yaml.Node {
	if v.Len() == 0 {
		return nil
	}
	n := &yaml.Node{}
	if n.Encode(v.Interface()) != nil {
		return nil
	}
	return n
}

func (e *encoder) secretNode(v reflect.Value, path string) *yaml.Node {
	s, ok := v.Interface().(Secret)
	if !ok || s.IsZero() {
		return nil
	}
	if name, isEnv := s.env(); isEnv {
		return textNode("${env:" + name + "}")
	}
	return textNode("${env:" + e.variable(path) + "}")
}

// variable returns the name of the environment variable for the secret at path: in upper case,
// with host names instead of indexes, and underscores for other characters. If two paths result
// in the same name, a number is appended to the second.
func (e *encoder) variable(path string) string {
	name := e.variableName(path)
	e.taken[name]++
	if n := e.taken[name]; n > 1 {
		return e.variable(path + "_" + strconv.Itoa(n))
	}
	return name
}

func (e *encoder) variableName(path string) string {
	if rest, ok := strings.CutPrefix(path, "spec.hosts["); ok {
		index, field, _ := strings.Cut(rest, "]")
		if i, err := strconv.Atoi(index); err == nil && i < len(e.cluster.Spec.Hosts) {
			path = "spec.hosts." + e.cluster.Spec.Hosts[i].Name + field
		}
	}
	path = strings.TrimPrefix(path, "spec.")
	var b strings.Builder
	b.WriteString(secretPrefix)
	last := '_'
	for _, r := range strings.ToUpper(path) {
		if (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			r = '_'
		}
		if r != '_' || last != '_' {
			b.WriteRune(r)
		}
		last = r
	}
	return strings.TrimSuffix(b.String(), "_")
}

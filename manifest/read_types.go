package manifest

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest/document"
)

var (
	secretType = reflect.TypeFor[Secret]()
	argsType   = reflect.TypeFor[Args]()
	anyMap     = reflect.TypeFor[map[string]any]()
	textType   = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readArgs reads flags: a list of name=value or {name, value}, or a mapping.
func readArgs(d *document.Document, n *yaml.Node, v reflect.Value, path string) {
	var out Args
	one := func(n *yaml.Node, name, value, at string) {
		name = strings.TrimLeft(name, "-")
		if name == "" || strings.ContainsAny(name, " \t\n") {
			d.Add(Error, n, at, fmt.Sprintf("%q is not a flag", document.Redact(n.Value)), "write name=value, as in v=2")
			return
		}
		out = append(out, Arg{Name: name, Value: value})
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			value := document.Follow(n.Content[i+1])
			if value.Kind != yaml.ScalarNode {
				d.Add(Error, value, document.Join(path, n.Content[i].Value), "is "+document.KindOf(value)+", but must be text", "write one value")
				continue
			}
			one(n.Content[i], n.Content[i].Value, value.Value, document.Join(path, n.Content[i].Value))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			item = document.Follow(item)
			if item.Kind == yaml.MappingNode {
				name, value := document.Lookup(item, "name"), document.Lookup(item, "value")
				if name == nil || value == nil || len(item.Content) != 4 {
					d.Add(Error, item, at, "is not a flag", "write {name: v, value: \"2\"} or v=2")
					continue
				}
				one(name, name.Value, value.Value, at)
				continue
			}
			name, value, ok := strings.Cut(item.Value, "=")
			if !ok || item.Kind != yaml.ScalarNode {
				d.Add(Error, item, at, fmt.Sprintf("%q has no =", document.Redact(item.Value)), "write name=value, as in v=2")
				continue
			}
			one(item, name, value, at)
		}
	default:
		d.Add(Error, n, path, "is "+document.KindOf(n)+", but must be a list of flags or a mapping", "write a list of name=value, as in [v=2]")
	}
	seen := map[string]bool{}
	for _, a := range out {
		if seen[a.Name] {
			d.Add(Warning, n, path, "flag "+a.Name+" is set twice", "most components use the last value")
		}
		seen[a.Name] = true
	}
	v.Set(reflect.ValueOf(out))
}

// readTaint reads the short form key=value:effect or key:effect.
func readTaint(d *document.Document, n *yaml.Node, v reflect.Value, path string) {
	left, effect, ok := cutEnd(n.Value, ":")
	key, value, _ := strings.Cut(left, "=")
	if !ok || key == "" || effect == "" {
		d.Add(Error, n, path, fmt.Sprintf("%q is not a taint", document.Redact(n.Value)), "write key=value:effect or key:effect, as in dedicated=db:NoSchedule")
		return
	}
	t := Taint{Key: key, Value: value, Effect: effect}
	v.Set(reflect.ValueOf(t))
	for _, name := range []string{"key", "effect"} {
		d.Mark(document.Join(path, name), n)
	}
	if words := document.Enum(reflect.TypeFor[Taint]().Field(2).Tag); !slices.Contains(words, effect) {
		d.Add(Error, n, document.Join(path, "effect"), fmt.Sprintf("%q is not one of %s", document.Redact(effect), strings.Join(words, ", ")), d.Suggest(effect, words))
	}
}

// cutEnd splits s at the last sep.
func cutEnd(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// readSecret reads a Secret. Its value never appears in a problem.
func readSecret(d *document.Document, n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.Add(Error, n, path, "is "+document.KindOf(n)+", but must be text", "write the secret, ${env:NAME} or file:PATH")
		return
	}
	s := NewSecret(n.Value)
	switch {
	case strings.HasPrefix(n.Value, "${") && s.Reference() == "":
		d.Add(Error, n, path, "is not a valid reference to a secret", "write ${env:NAME} or file:PATH")
	case n.Value == "file:":
		d.Add(Error, n, path, "has no path after file:", "write file:PATH")
	case n.Value == document.Mask:
		d.Add(Error, n, path, "is ***, which replaces a secret that was removed", "write the secret, ${env:NAME} or file:PATH")
	}
	v.Set(reflect.ValueOf(s))
}

// otherWords are common names for the values of enums.
var otherWords = map[string]string{"x86_64": "amd64", "x64": "amd64", "aarch64": "arm64", "armv8": "arm64", "crio": "cri-o", "isula": "isulad"}

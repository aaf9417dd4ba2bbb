package manifest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// args reads flags: a list of name=value or {name, value}, or a mapping.
func (w *walker) args(n *yaml.Node, v reflect.Value, path string) {
	var out Args
	one := func(n *yaml.Node, name, value, at string) {
		name = strings.TrimLeft(name, "-")
		if name == "" || strings.ContainsAny(name, " \t\n") {
			w.add(Error, n, at, fmt.Sprintf("%q is no flag", shown(n.Value)), "write name=value, as in v=2")
			return
		}
		out = append(out, Arg{Name: name, Value: value})
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			value := w.follow(n.Content[i+1])
			if value.Kind != yaml.ScalarNode {
				w.add(Error, value, join(path, n.Content[i].Value), "is "+kindWord(value)+", and has to be text", "write one value")
				continue
			}
			one(n.Content[i], n.Content[i].Value, value.Value, join(path, n.Content[i].Value))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			item = w.follow(item)
			if item.Kind == yaml.MappingNode {
				_, _, name := lookup(item, []string{"name"})
				_, _, value := lookup(item, []string{"value"})
				if name == nil || value == nil || len(item.Content) != 4 {
					w.add(Error, item, at, "is no flag", "write {name: v, value: \"2\"} or v=2")
					continue
				}
				one(name, name.Value, value.Value, at)
				continue
			}
			name, value, ok := strings.Cut(item.Value, "=")
			if !ok || item.Kind != yaml.ScalarNode {
				w.add(Error, item, at, fmt.Sprintf("%q has no =", shown(item.Value)), "write name=value, as in v=2")
				continue
			}
			one(item, name, value, at)
		}
	default:
		w.add(Error, n, path, "is "+kindWord(n)+", and has to be a list of flags or a mapping", "write a list of name=value, as in [v=2]")
	}
	seen := map[string]bool{}
	for _, a := range out {
		if seen[a.Name] {
			w.add(Warning, n, path, "flag "+a.Name+" stands twice", "most components take the last one")
		}
		seen[a.Name] = true
	}
	v.Set(reflect.ValueOf(out))
}

// taint reads the short form key=value:effect or key:effect.
func (w *walker) taint(n *yaml.Node, v reflect.Value, path string) {
	left, effect, ok := cutEnd(n.Value, ":")
	key, value, _ := strings.Cut(left, "=")
	if !ok || key == "" || effect == "" {
		w.add(Error, n, path, fmt.Sprintf("%q is no taint", shown(n.Value)), "write key=value:effect or key:effect, as in dedicated=db:NoSchedule")
		return
	}
	t := Taint{Key: key, Value: value, Effect: effect}
	v.Set(reflect.ValueOf(t))
	for _, name := range []string{"key", "effect"} {
		w.places[join(path, name)], w.written[join(path, name)] = n, true
	}
	if words := enumOf(reflect.TypeFor[Taint]().Field(2).Tag); !slices.Contains(words, effect) {
		w.add(Error, n, join(path, "effect"), fmt.Sprintf("%q is not one of %s", shown(effect), strings.Join(words, ", ")), suggest(effect, words))
	}
}

// cutEnd cuts s at the last sep.
func cutEnd(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

package document

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Lookup returns the value at a path of mappings below n; nil if there is none.
func Lookup(n *yaml.Node, path ...string) *yaml.Node {
	_, _, value := lookup(n, path)
	return value
}

// lookup returns the value at a path of mappings, with the mapping that contains it and the
// index of its key.
func lookup(n *yaml.Node, path []string) (parent *yaml.Node, at int, value *yaml.Node) {
	for len(path) > 0 {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n.Kind != yaml.MappingNode {
			return nil, 0, nil
		}
		found := false
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == path[0] {
				parent, at, value, found = n, i, n.Content[i+1], true
				break
			}
		}
		if !found {
			return nil, 0, nil
		}
		n, path = value, path[1:]
	}
	return parent, at, value
}

// Remove removes the value at a path of mappings below root, and the mappings that become empty.
// It returns the key of the value.
func Remove(root *yaml.Node, path []string) (key *yaml.Node) {
	parent, at, _ := lookup(root, path)
	if parent == nil {
		return nil
	}
	key = parent.Content[at]
	parent.Content = slices.Delete(parent.Content, at, at+2)
	prune(root, path[:len(path)-1])
	return key
}

// prune removes mappings that are empty after a move: spec.highAvailability is not a field,
// only its parts are second spellings.
func prune(root *yaml.Node, path []string) {
	for len(path) > 1 {
		parent, at, n := lookup(root, path)
		if n == nil || n.Kind != yaml.MappingNode || len(n.Content) > 0 {
			return
		}
		parent.Content = slices.Delete(parent.Content, at, at+2)
		path = path[:len(path)-1]
	}
}

// Put inserts n at path below root, and creates missing mappings. An existing value must be
// equal, or a mapping that n's fields are merged into; otherwise Put adds an error. from is the
// full path of n in the document, with its key, and to is its new path. Problems use from.
func (d *Document) Put(root *yaml.Node, path []string, key, n *yaml.Node, from, to string) {
	for i, name := range path {
		_, _, next := lookup(root, []string{name})
		switch {
		case next == nil && i == len(path)-1:
			k := *key
			k.Value = name
			root.Content = append(root.Content, &k, n)
			d.moved[to] = from
			return
		case next == nil:
			k := *key
			k.Value = name
			next = &yaml.Node{Kind: yaml.MappingNode, Line: key.Line, Column: key.Column}
			root.Content = append(root.Content, &k, next)
			d.made[strings.TrimSuffix(to, "."+strings.Join(path[i+1:], "."))] = from
		case i == len(path)-1:
			d.merge(next, n, key, from, to)
			return
		}
		root = next
	}
}

// merge merges n into the value of the first spelling.
func (d *Document) merge(have, n, key *yaml.Node, from, to string) {
	if have.Kind == yaml.MappingNode && n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			d.Put(have, []string{name}, n.Content[i], n.Content[i+1], Join(from, name), Join(to, name))
		}
		return
	}
	if !equalNodes(have, n) {
		d.Add(Error, key, from, fmt.Sprintf("is the same field as %s on line %d, but has another value", to, have.Line), "keep one of the two")
	}
}

func equalNodes(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Value != b.Value || len(a.Content) != len(b.Content) {
		return false
	}
	return slices.EqualFunc(a.Content, b.Content, equalNodes)
}

package manifest

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest/document"
)

// writtenAt is a part of the document that a Cluster was decoded from.
type writtenAt struct {
	path string // in the spelling of the document
	node *yaml.Node
}

// valuesPlaces returns the place of each add-on's values, or of the add-on if it has no values.
// They are checked against the chart's schema later.
func (d *config) valuesPlaces(c *Cluster) []writtenAt {
	var out []writtenAt
	for i := range c.Spec.Addons {
		at := document.Indexed("spec.addons", i) + ".values"
		out = append(out, writtenAt{path: d.AsWritten(at), node: d.Place(at)})
	}
	return out
}

// ValuesProblem returns an error in the values of the add-on with an index. Its place is that
// of the value, or of the nearest enclosing value in the document.
func (c *Cluster) ValuesProblem(addon int, path []string, message, advice string) Problem {
	p := Problem{Path: document.Indexed("spec.addons", addon) + ".values", Message: message, Advice: advice}
	var n *yaml.Node
	if addon < len(c.values) {
		p.Path, n = c.values[addon].path, c.values[addon].node
	}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	if len(c.Spec.Addons[addon].Values) == 0 {
		n = nil // the place is the add-on; path is not about its fields
	}
	for _, name := range path {
		key, value, inList := child(n, name)
		if inList {
			p.Path += "[" + name + "]"
		} else {
			p.Path = document.Join(p.Path, name)
		}
		if n = value; n != nil {
			p.Line, p.Column = key.Line, key.Column
		}
	}
	return p
}

// child returns the entry of a mapping with a name, with its key, or the entry of a list with
// an index.
func child(n *yaml.Node, name string) (key, value *yaml.Node, inList bool) {
	if n != nil {
		n = document.Follow(n)
	}
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i], true
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i], n.Content[i+1], false
			}
		}
	}
	return nil, nil, false
}

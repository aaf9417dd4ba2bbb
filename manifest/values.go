package manifest

import (
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest/document"
)

// writtenAt is a part of the document that a Cluster was decoded from.
type writtenAt struct {
	path string // as the document has it
	node *yaml.Node
}

// valuesPlaces remembers where the values of each add-on stand, or the add-on
// itself where it has none: whether they suit its chart is found later.
func (d *config) valuesPlaces(c *Cluster) []writtenAt {
	var out []writtenAt
	for i := range c.Spec.Addons {
		at := document.Indexed("spec.addons", i) + ".values"
		out = append(out, writtenAt{path: d.AsWritten(at), node: d.Place(at)})
	}
	return out
}

// ValuesProblem is an error in the values of the add-on with an index, at the
// place of the value, or of the nearest one around it that is written.
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
		n = nil // it is the add-on, whose own fields are not meant
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

// child gives what a mapping has under a name, with its key, or a list at a place.
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

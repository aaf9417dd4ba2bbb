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

// NetworkValues is the index for ValuesProblem of the values of the pod network's chart.
const NetworkValues = -1

// valuesPlaces returns the place of the values of each add-on and of the pod network, by index, or of
// the add-on or the network if it has no values. They are checked against the chart's schema later.
func (d *config) valuesPlaces(c *Cluster) map[int]writtenAt {
	out := map[int]writtenAt{}
	for i := NetworkValues; i < len(c.Spec.Addons); i++ {
		at := valuesPath(i)
		out[i] = writtenAt{path: d.AsWritten(at), node: d.Place(at)}
	}
	return out
}

// valuesPath returns the path of the values with an index.
func valuesPath(i int) string {
	if i == NetworkValues {
		return "spec.network.values"
	}
	return document.Indexed("spec.addons", i) + ".values"
}

// ValuesProblem returns an error in the values of the add-on with an index, or of NetworkValues. Its
// place is that of the value, or of the nearest enclosing value in the document.
func (c *Cluster) ValuesProblem(of int, path []string, message, advice string) Problem {
	p := Problem{Path: valuesPath(of), Message: message, Advice: advice}
	var n *yaml.Node
	if written, ok := c.values[of]; ok {
		p.Path, n = written.path, written.node
	}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	values := c.Spec.Network.Values
	if of != NetworkValues {
		values = c.Spec.Addons[of].Values
	}
	if len(values) == 0 {
		n = nil // the place is the add-on or the network; path is not about its fields
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

package plan

import (
	"fmt"
	"strings"
)

// String returns g as text, for people and golden files.
func (g *Graph) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d steps\n", g.Name, len(g.Nodes))
	for _, n := range g.all() { // undo steps come last and are recognized by their ids
		fmt.Fprintf(&b, "%s  on %s\n", n.ID, strings.Join(n.hostNames(), ", "))
		for _, d := range n.Deps {
			word := "after"
			if d.Lane {
				word = "lane "
			}
			fmt.Fprintf(&b, "    %s %s\n", word, d.On.ID)
		}
		m := n.Step.Meta()
		for _, need := range m.Needs {
			fmt.Fprintf(&b, "    needs %s %s\n", need.Kind, need.Name)
		}
		for _, k := range m.Reads {
			fmt.Fprintf(&b, "    reads %s\n", k.Name())
		}
		for _, k := range m.Writes {
			fmt.Fprintf(&b, "    writes %s\n", k.Name())
		}
	}
	return b.String()
}

func (n *Node) hostNames() []string {
	names := make([]string, len(n.Hosts))
	for i, h := range n.Hosts {
		names[i] = h.Name
	}
	return names
}

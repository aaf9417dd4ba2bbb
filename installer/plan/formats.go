package plan

import (
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Dot returns g in the language of Graphviz.
func (g *Graph) Dot() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  rankdir=LR;\n  node [shape=box];\n", g.Name)
	for _, n := range g.Nodes {
		fmt.Fprintf(&b, "  %q [label=%q];\n", n.ID, n.Step.Meta().Name+"\n"+strings.Join(n.hostNames(), ", "))
		for _, d := range n.Deps {
			style := ""
			if d.Lane {
				style = " [style=dashed]"
			}
			fmt.Fprintf(&b, "  %q -> %q%s;\n", d.On.ID, n.ID, style)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// Mermaid returns g as a mermaid flowchart.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	index := map[*Node]int{}
	for i, n := range g.Nodes {
		index[n] = i
		fmt.Fprintf(&b, "  n%d[\"%s<br/>%s\"]\n", i, n.Step.Meta().Name, strings.Join(n.hostNames(), ", "))
		for _, d := range n.Deps {
			arrow := "-->"
			if d.Lane {
				arrow = "-.->"
			}
			fmt.Fprintf(&b, "  n%d %s n%d\n", index[d.On], arrow, i)
		}
	}
	return b.String()
}

// NodeView is a node in JSON output.
type NodeView struct {
	ID    string          `json:"id"`
	Task  string          `json:"task"`
	Step  string          `json:"step"`
	Hosts []string        `json:"hosts"`
	After []string        `json:"after,omitempty"` // all hosts of these before any of this
	Lane  []string        `json:"lane,omitempty"`  // ordered host by host
	Needs []manifest.Need `json:"needs,omitempty"`
	Risk  string          `json:"risk"`
}

// View returns g as plain data.
func (g *Graph) View() []NodeView {
	var out []NodeView
	for _, n := range g.Nodes {
		m := n.Step.Meta()
		v := NodeView{ID: n.ID, Task: n.Task, Step: m.Name, Hosts: n.hostNames(), Needs: m.Needs, Risk: m.Risk.String()}
		for _, d := range n.Deps {
			if d.Lane {
				v.Lane = append(v.Lane, d.On.ID)
			} else {
				v.After = append(v.After, d.On.ID)
			}
		}
		out = append(out, v)
	}
	return out
}

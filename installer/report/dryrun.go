package report

import (
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// DryRun collects what steps would change, by host.
type DryRun struct {
	would map[string]map[string][]string // host, node id: changes
	done  map[string]int                 // host: steps that have nothing to do
}

// Event adds one event.
func (d *DryRun) Event(e engine.Event) {
	if d.would == nil {
		d.would, d.done = map[string]map[string][]string{}, map[string]int{}
	}
	switch e.Outcome {
	case engine.WouldRun:
		if d.would[e.Host] == nil {
			d.would[e.Host] = map[string][]string{}
		}
		d.would[e.Host][e.Node] = e.Changes
	case engine.Skipped:
		d.done[e.Host]++
	}
}

// Hosts returns how many hosts would be changed.
func (d *DryRun) Hosts() int { return len(d.would) }

// HostPlan is the plan of hosts that have exactly the same changes.
type HostPlan struct {
	Text     string // the changes, in the order of the plan
	WouldRun int    // steps that would run
	Done     int    // steps that have nothing to do
	Hosts    []string
}

// Plans returns the changes in the order of the hosts and of the plan.
func (d *DryRun) Plans(g *plan.Graph, c *manifest.Cluster) []HostPlan {
	type key struct {
		text        string
		would, done int
	}
	var out []HostPlan
	at := map[key]int{}
	for _, h := range c.Spec.Hosts {
		k := key{text: d.host(h.Name, g), would: len(d.would[h.Name]), done: d.done[h.Name]}
		if k.would+k.done == 0 {
			continue
		}
		i, ok := at[k]
		if !ok {
			i, at[k] = len(out), len(out)
			out = append(out, HostPlan{Text: k.text, WouldRun: k.would, Done: k.done})
		}
		out[i].Hosts = append(out[i].Hosts, h.Name)
	}
	return out
}

// host returns the text for one host.
func (d *DryRun) host(name string, g *plan.Graph) string {
	var b strings.Builder
	for _, n := range g.Nodes {
		changes, ok := d.would[name][n.ID]
		if !ok {
			continue
		}
		m := n.Step.Meta()
		switch {
		case len(changes) == 0 && m.ReadOnly:
			fmt.Fprintf(&b, "  %s: waits\n", m.Name)
		case len(changes) == 0:
			fmt.Fprintf(&b, "  %s: runs; its changes are known only when it runs\n", m.Name)
		default:
			fmt.Fprintf(&b, "  %s\n", m.Name)
		}
		for _, c := range changes {
			fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(c, "\n", "\n    "))
		}
	}
	return b.String()
}

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// dryRun collects what steps would change, to be printed host by host.
type dryRun struct {
	would map[string]map[string][]string // host, node id: changes
	done  map[string]int                 // host: steps that have nothing to do
}

func (d *dryRun) event(e engine.Event) {
	if d.would == nil {
		d.would, d.done = map[string]map[string][]string{}, map[string]int{}
	}
	switch e.Outcome {
	case engine.Would:
		if d.would[e.Host] == nil {
			d.would[e.Host] = map[string][]string{}
		}
		d.would[e.Host][e.Node] = e.Changes
	case engine.Skipped:
		d.done[e.Host]++
	}
}

// hostPlan is what is to be done on a host.
type hostPlan struct {
	text  string
	would int
	done  int
}

// writeTo writes the changes in the order of the hosts and of the plan. Hosts with
// the very same changes share one list.
func (d *dryRun) writeTo(w io.Writer, g *plan.Graph, c *manifest.Cluster) {
	var plans []hostPlan
	hosts := map[hostPlan][]string{}
	for _, h := range c.Spec.Hosts {
		p := hostPlan{text: d.host(h.Name, g), would: len(d.would[h.Name]), done: d.done[h.Name]}
		if p.would+p.done == 0 {
			continue
		}
		if hosts[p] == nil {
			plans = append(plans, p)
		}
		hosts[p] = append(hosts[p], h.Name)
	}
	for _, p := range plans {
		each := ""
		if len(hosts[p]) > 1 {
			each = ", each"
		}
		said := count(p.would, "step") + " would run"
		switch {
		case p.would == 0:
			said = "nothing to do, " + count(p.done, "step") + " done already"
		case p.done > 0:
			said += fmt.Sprintf(", %d done already", p.done)
		}
		fmt.Fprintf(w, "%s%s: %s\n%s\n", hostList(c, hosts[p]), each, said, p.text)
	}
}

// host is the list of one host.
func (d *dryRun) host(name string, g *plan.Graph) string {
	var b strings.Builder
	for _, n := range g.Nodes {
		changes, ok := d.would[name][n.ID]
		if !ok {
			continue
		}
		m := n.Step.Meta()
		switch {
		case len(changes) == 0 && m.LooksOnly:
			fmt.Fprintf(&b, "  %s: waits\n", m.Name)
		case len(changes) == 0:
			fmt.Fprintf(&b, "  %s: acts; what it changes shows when it runs\n", m.Name)
		default:
			fmt.Fprintf(&b, "  %s\n", m.Name)
		}
		for _, c := range changes {
			fmt.Fprintf(&b, "    %s\n", strings.ReplaceAll(c, "\n", "\n    "))
		}
	}
	return b.String()
}

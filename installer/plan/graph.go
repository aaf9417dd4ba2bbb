package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
)

// Graph is the complete plan of a pipeline. Dependencies point to earlier nodes only, so it
// has no cycle.
type Graph struct {
	Pipeline
	Nodes []*Node
	Leads []manifest.Host // the masters that can be the lead, in the order in which they are tried
}

// HostsOf returns the hosts that a node may run on: for the lead, every master that can be it.
func (g *Graph) HostsOf(n *Node) []manifest.Host {
	var out []manifest.Host
	for _, h := range n.Hosts {
		if IsLead(h) {
			out = append(out, g.Leads...)
		} else {
			out = append(out, h)
		}
	}
	return out
}

// Hosts returns every host that g may run on, once.
func (g *Graph) Hosts() []manifest.Host {
	var out []manifest.Host
	seen := map[string]bool{}
	for _, n := range g.Nodes {
		for _, h := range g.HostsOf(n) {
			if !seen[h.Name] {
				seen[h.Name] = true
				out = append(out, h)
			}
		}
	}
	return out
}

// checkSkipped checks that the graph contains no check that was to be skipped.
func (g *Graph) checkSkipped(names []string) error {
	var errs []error
	for _, n := range g.all() {
		if name := n.Step.Meta().Name; slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("%s cannot be left out: its task does not call Scope.Checks", n.ID))
		}
	}
	return errors.Join(errs...)
}

// checkNodes checks that no node is in the graph twice, that ids are unique, and that undo steps
// depend on nothing that may be missing. Joining the same Fragment value twice is the only way to
// make a cycle.
func (g *Graph) checkNodes() error {
	var errs []error
	once, ids := map[*Node]bool{}, map[string]bool{}
	for i, n := range g.all() {
		m := n.Step.Meta()
		switch {
		case i < len(g.Nodes):
		case len(n.Guards) > 0:
			errs = append(errs, fmt.Errorf("%s is an undo step, and has undo steps itself", n.ID))
		case len(m.Reads)+len(m.Writes) > 0:
			errs = append(errs, fmt.Errorf("%s is an undo step, and reads or writes outputs: the steps beside it may not have run", n.ID))
		}
		switch {
		case once[n]:
			errs = append(errs, fmt.Errorf("%s is in the plan twice: a fragment may be joined only once", n.ID))
		case ids[n.ID]:
			errs = append(errs, fmt.Errorf("two steps are called %s: give one of them another name", n.ID))
		}
		once[n], ids[n.ID] = true, true
		for _, d := range n.Deps {
			if !once[d.On] {
				errs = append(errs, fmt.Errorf("%s waits for %s, which does not come before it", n.ID, d.On.ID))
			}
		}
	}
	return errors.Join(errs...)
}

// checkOutputs checks that every reader of an output runs after its writer.
func (g *Graph) checkOutputs() []error {
	var errs []error
	before := map[*Node]map[string]bool{} // outputs that are certainly written when a node starts
	for _, n := range g.Nodes {
		have := written(n, before)
		before[n] = have
		for _, k := range n.Step.Meta().Reads {
			if !have[k.Name()] {
				errs = append(errs, fmt.Errorf("%s reads %s, which no step before it writes", n.ID, k.Name()))
			}
		}
	}
	return errs
}

// written returns the outputs that are certainly written when n starts. Consecutive nodes that
// write nothing new share one map: a plan has tens of thousands of them.
func written(n *Node, before map[*Node]map[string]bool) map[string]bool {
	var have map[string]bool
	own := false // have is this node's own map and may be changed
	add := func(name string) {
		if have[name] {
			return
		}
		if !own {
			have, own = maps.Clone(have), true
		}
		if have == nil {
			have = map[string]bool{}
		}
		have[name] = true
	}
	for i, d := range n.Deps {
		if d.Lane && !contains(d.On.Hosts, n.Hosts) {
			continue // n also runs on hosts on which nothing waits for d.On
		}
		if i == 0 {
			have = before[d.On]
		}
		for name := range before[d.On] {
			add(name)
		}
		for _, w := range d.On.Step.Meta().Writes {
			add(w.Name())
		}
	}
	return have
}

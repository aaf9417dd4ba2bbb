package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
)

// Graph is the whole plan of a pipeline. Dependencies point to earlier nodes only, so
// it has no cycle.
type Graph struct {
	Pipeline
	Nodes []*Node
	Leads []manifest.Host // the masters of which the lead is one, in the order in which they are asked
}

// HostsOf gives the hosts that a node may run on: for the lead all that it may be.
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

// Hosts gives every host that g may run on, once.
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

// checkSkipped proves that no check is in the graph which was to be left out.
func (g *Graph) checkSkipped(names []string) error {
	var errs []error
	for _, n := range g.all() {
		if name := n.Step.Meta().Name; slices.Contains(names, name) {
			errs = append(errs, fmt.Errorf("%s cannot be left out: its task does not ask Scope.Checks", n.ID))
		}
	}
	return errors.Join(errs...)
}

// checkNodes proves that no node is in the graph twice (the same Fragment value
// joined twice is the one way to make a cycle), that ids are unique, and that ways back
// depend on nothing that may not be there.
func (g *Graph) checkNodes() error {
	var errs []error
	once, ids := map[*Node]bool{}, map[string]bool{}
	for i, n := range g.all() {
		m := n.Step.Meta()
		switch {
		case i < len(g.Nodes):
		case len(n.Guards) > 0:
			errs = append(errs, fmt.Errorf("%s is a way back, and has one itself", n.ID))
		case len(m.Reads)+len(m.Writes) > 0:
			errs = append(errs, fmt.Errorf("%s is a way back, and reads or writes outputs: the steps beside it may not have run", n.ID))
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

// checkOutputs proves that whoever reads an output runs after its writer.
func (g *Graph) checkOutputs() []error {
	var errs []error
	before := map[*Node]map[string]bool{} // what was surely written when a node begins
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

// written gives what was surely written when n begins. Of nodes that follow each other
// and write nothing new it is one map: a plan has tens of thousands of them.
func written(n *Node, before map[*Node]map[string]bool) map[string]bool {
	var have map[string]bool
	own := false // have may be changed
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

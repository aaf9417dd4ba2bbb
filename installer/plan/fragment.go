package plan

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Node is one step on a set of hosts: a plan for a hundred hosts stays one a
// person can read. The engine runs it once for each host.
type Node struct {
	ID     string // module/task/step[host]
	Module string
	Task   string // module/task
	Step   steps.Step
	Hosts  []manifest.Host
	Deps   []Dep
	Set    string   // of the lock, whose artifacts the step opens; "" is the scope's
	Guards []*Guard // the ways back that a failure here starts, the innermost first

	suffix string // which of several parts of a task that are alike: a host, a batch, a set
}

// Dep orders two nodes. A lane holds host by host: node3 need not wait for
// node1. Otherwise it is a barrier, and all hosts wait for all.
type Dep struct {
	On   *Node
	Lane bool
}

// Fragment is a part of a graph: what has to run, where it begins, where it
// ends. The combinators keep entry and exit. The zero Fragment is empty and
// joins to nothing, so that "no such hosts" needs no if.
type Fragment struct{ nodes, entry, exit []*Node }

// Empty tells whether nothing has to run.
func (f Fragment) Empty() bool { return len(f.nodes) == 0 }

// On runs ss one after another on each of hosts, the hosts side by side.
func On(hosts []manifest.Host, ss ...steps.Step) Fragment {
	var f Fragment
	if len(hosts) == 0 {
		return f
	}
	for _, s := range ss {
		n := &Node{Step: s, Hosts: hosts}
		if len(f.nodes) == 0 {
			f.entry = []*Node{n}
		} else {
			n.Deps = []Dep{{On: f.nodes[len(f.nodes)-1], Lane: true}}
		}
		f.nodes, f.exit = append(f.nodes, n), []*Node{n}
	}
	return f
}

// Seq runs fragments one after another: all of one before any of the next.
func Seq(fs ...Fragment) Fragment {
	var out Fragment
	for _, f := range fs {
		switch {
		case f.Empty():
			continue
		case out.Empty():
			out = f
			out.nodes = slices.Clone(f.nodes) // appended to from here on: a rolling plan has a thousand parts
			continue
		}
		for _, e := range f.entry {
			for _, x := range out.exit {
				e.Deps = append(e.Deps, Dep{On: x})
			}
		}
		out.nodes, out.exit = append(out.nodes, f.nodes...), f.exit
	}
	return out
}

// Par puts fragments side by side.
func Par(fs ...Fragment) Fragment {
	var out Fragment
	for _, f := range fs {
		out.nodes = append(out.nodes, f.nodes...)
		out.entry = append(out.entry, f.entry...)
		out.exit = append(out.exit, f.exit...)
	}
	return out
}

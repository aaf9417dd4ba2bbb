package plan

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Node is one step on a set of hosts, so that a plan for a hundred hosts stays readable. The
// engine runs it once for each host.
type Node struct {
	ID     string // module/task/step[host]
	Module string
	Task   string // module/task
	Step   steps.Step
	Hosts  []manifest.Host
	Deps   []Dep
	Set    string   // set of the lock whose artifacts the step opens; "" is the scope's
	Guards []*Guard // whose undo steps a failure here starts, the innermost first

	suffix string // distinguishes similar parts of a task: a host, a batch, a set
}

// Dep orders two nodes. With Lane the order applies host by host: node3 does not wait for
// node1. Otherwise it is a barrier: all hosts wait for all.
type Dep struct {
	On   *Node
	Lane bool
}

// Fragment is a part of a graph with its entry and exit nodes. The zero Fragment is empty, and
// joining it changes nothing, so that callers need no special case for "no such hosts".
type Fragment struct{ nodes, entry, exit []*Node }

// Empty reports whether the fragment has no nodes.
func (f Fragment) Empty() bool { return len(f.nodes) == 0 }

// On runs ss one after another on each of hosts; the hosts run in parallel.
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
			out.nodes = slices.Clone(f.nodes) // cloned because it is appended to: a rolling plan has a thousand parts
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

// Then runs g after f. What comes next waits for both by edges of its own: it needs what f does,
// whether there is a g or not.
func Then(f, g Fragment) Fragment {
	out := Seq(f, g)
	if !f.Empty() && !g.Empty() {
		out.exit = slices.Concat(f.exit, g.exit)
	}
	return out
}

// Par runs fragments in parallel.
func Par(fs ...Fragment) Fragment {
	var out Fragment
	for _, f := range fs {
		out.nodes = append(out.nodes, f.nodes...)
		out.entry = append(out.entry, f.entry...)
		out.exit = append(out.exit, f.exit...)
	}
	return out
}

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

// After makes f wait for all of each of others, and returns f. The result of Overlap holds both.
func (f Fragment) After(others ...Fragment) Fragment {
	for _, o := range others {
		for _, e := range f.entry {
			for _, x := range o.exit {
				e.Deps = append(e.Deps, Dep{On: x})
			}
		}
	}
	return f
}

// AfterOnHosts makes f wait for others host by host, and returns f: on each host the steps of f
// wait for those of others on the same host, and for no other host. The lead is a host of its
// own here: use After for steps on it.
func (f Fragment) AfterOnHosts(others ...Fragment) Fragment {
	for _, o := range others {
		for _, n := range f.nodes {
			for _, x := range o.nodes {
				if shared := intersection(x.Hosts, n.Hosts); len(shared) > 0 && !o.precedes(x, shared, true) && !f.follows(n, shared, true) {
					n.Deps = append(n.Deps, Dep{On: x, Lane: true})
				}
			}
		}
	}
	return f
}

// precedes reports whether another node of f on some hosts waits there for x. lanes is whether
// that may be host by host.
func (f Fragment) precedes(x *Node, hosts []manifest.Host, lanes bool) bool {
	for _, y := range f.nodes {
		for _, d := range y.Deps {
			if all := d.waitsForAll(y); d.On == x && (lanes || all) && (contains(y.Hosts, hosts) || all && f.precedes(y, hosts, false)) {
				return true
			}
		}
	}
	return false
}

// follows reports whether n waits for another node of f on some hosts. lanes is whether that may
// be host by host.
func (f Fragment) follows(n *Node, hosts []manifest.Host, lanes bool) bool {
	return slices.ContainsFunc(n.Deps, func(d Dep) bool {
		all := d.waitsForAll(n)
		return slices.Contains(f.nodes, d.On) && (lanes || all) && (contains(d.On.Hosts, hosts) || all && f.follows(d.On, hosts, false))
	})
}

// waitsForAll reports whether n, whose dependency d is, waits for all hosts of the other node.
func (d Dep) waitsForAll(n *Node) bool { return !d.Lane || contains(n.Hosts, d.On.Hosts) }

// contains reports whether all hosts of some are in all.
func contains(all, some []manifest.Host) bool { return len(intersection(some, all)) == len(some) }

// intersection returns the hosts of a that are in b, in a's order.
func intersection(a, b []manifest.Host) []manifest.Host {
	if len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] { // most steps of a task share one list
		return a
	}
	in := make(map[string]bool, len(b))
	for _, h := range b {
		in[h.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(h manifest.Host) bool { return !in[h.Name] })
}

// Overlap joins fragments whose order After and AfterOnHosts have set. What comes next waits for
// all of them, and they wait for what comes before.
func Overlap(fs ...Fragment) Fragment {
	out := Par(fs...)
	of := map[*Node]int{} // which of fs it is from
	for i, f := range fs {
		for _, n := range f.nodes {
			of[n] = i
		}
	}
	waits, awaited := map[*Node]bool{}, map[*Node][]manifest.Host{} // by others of fs
	for _, n := range out.nodes {
		for _, d := range n.Deps {
			if i, within := of[d.On]; !within || i == of[n] {
				continue
			}
			waits[n] = waits[n] || !d.Lane || contains(d.On.Hosts, n.Hosts)
			if d.waitsForAll(n) {
				awaited[d.On] = d.On.Hosts
			} else {
				awaited[d.On] = slices.Concat(awaited[d.On], n.Hosts)
			}
		}
	}
	out.entry = slices.DeleteFunc(out.entry, func(n *Node) bool { return waits[n] })
	out.exit = slices.DeleteFunc(out.exit, func(n *Node) bool { return contains(awaited[n], n.Hosts) })
	return out
}

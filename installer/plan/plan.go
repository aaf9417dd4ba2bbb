package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Scope is all that a planner may know: what is wanted, what exists, which set of the
// lock, and the hosts to act on. Targets narrows a later change to some hosts, and Away
// takes out those that the run goes without, while Want still describes the whole.
type Scope struct {
	Want    *manifest.Cluster
	Exists  *manifest.Existing // nil where nothing was applied yet, or nobody has asked
	Set     string             // of the lock; "" is its first
	Targets []string           // host names; none means all
	Away    []string           // host names
	Skip    []string           // checks that Checks leaves out, by their steps' names
	Batch   Batch              // how many hosts a rolling change visits at once; masters and members go one by one
}

// Role gives the hosts of a role, narrowed to the targets.
func (s Scope) Role(role string) []manifest.Host {
	return s.Only(s.Want.HostsWith(role))
}

// Hosts gives every host once, narrowed to the targets.
func (s Scope) Hosts() []manifest.Host { return s.Only(s.Want.Spec.Hosts) }

// Only gives those of some hosts that are targets, and not away.
func (s Scope) Only(all []manifest.Host) []manifest.Host {
	if len(s.Targets)+len(s.Away) == 0 {
		return all
	}
	var out []manifest.Host
	for _, h := range all {
		if (len(s.Targets) == 0 || slices.Contains(s.Targets, h.Name)) && !slices.Contains(s.Away, h.Name) {
			out = append(out, h)
		}
	}
	return out
}

// Checks gives those of some checks that are not left out. A task that puts in a check which
// may be left out asks this; Build refuses a plan that holds one of Skip.
func (s Scope) Checks(all ...steps.Step) []steps.Step {
	return slices.DeleteFunc(all, func(c steps.Step) bool { return slices.Contains(s.Skip, c.Meta().Name) })
}

// Whole is the same scope without targets.
func (s Scope) Whole() Scope { s.Targets = nil; return s }

// Task says which steps, where, in what order. It holds no business logic:
// that is the steps'.
type Task struct {
	Name string
	When func(Scope) bool // nil is always
	Plan func(Scope) Fragment
}

// Module makes one part of a cluster. Plan has do expand each task, and joins what
// comes of them with Seq and Par; a task that its When leaves out is an empty Fragment.
type Module struct {
	Name string
	Plan func(do func(Task) Fragment) Fragment
}

// InTurn is the Plan of a Module whose tasks run one after another.
func InTurn(tasks ...Task) func(do func(Task) Fragment) Fragment {
	return func(do func(Task) Fragment) Fragment {
		var out Fragment
		for _, t := range tasks {
			out = Seq(out, do(t))
		}
		return out
	}
}

// Build expands p for s into a graph, and proves that node ids are unique and
// that every output read has a writer before it.
func Build(p Pipeline, s Scope) (*Graph, error) {
	var all []Fragment
	for _, m := range p.Modules {
		all = append(all, m.Plan(func(t Task) Fragment {
			if t.When != nil && !t.When(s) {
				return Fragment{}
			}
			f := t.Plan(s)
			label(f, m.Name, t.Name)
			return f
		}))
	}
	g := &Graph{Pipeline: p, Nodes: Seq(all...).nodes, Leads: s.Leads()}
	if err := errors.Join(g.checkNodes(), g.checkSkipped(s.Skip)); err != nil {
		return nil, fmt.Errorf("plan %s: %w", p.Name, err)
	}
	if err := errors.Join(g.checkOutputs()...); err != nil {
		return nil, fmt.Errorf("plan %s: %w", p.Name, err)
	}
	return g, nil
}

func label(f Fragment, module, task string) {
	for _, n := range f.all() {
		n.Module, n.Task = module, module+"/"+task
		n.ID = n.Task + "/" + n.Step.Meta().Name
		if n.suffix != "" {
			n.ID += "[" + n.suffix + "]"
		}
	}
}

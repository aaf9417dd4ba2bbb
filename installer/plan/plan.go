package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Scope is the input of a planner: the desired cluster, the existing cluster, the set of the
// lock, and the hosts to act on. Targets narrows a later change to some hosts, and Away
// excludes skipped hosts; Want still describes the complete cluster.
type Scope struct {
	Want    *manifest.Cluster
	Exists  *manifest.Existing // nil if nothing was applied yet, or the record was not read
	Set     string             // of the lock; "" is its first
	Before  *manifest.Cluster  // the cluster with the hosts that leave it, as applied; nil if none leaves
	Targets []string           // host names; none means all
	Away    []string           // host names
	Skip    []string           // steps' names of the checks that Checks leaves out
	Flags   []string           // names of the pipeline's flags that are given
	Drain   Drain              // how nodes are drained
	Batch   Batch              // how many hosts a rolling change processes at once; masters and etcd members always one by one
}

// Role returns the hosts of a role, narrowed to the targets.
func (s Scope) Role(role string) []manifest.Host {
	return s.Only(s.Want.HostsWith(role))
}

// Hosts returns every host once, narrowed to the targets.
func (s Scope) Hosts() []manifest.Host { return s.Only(s.Want.Spec.Hosts) }

// Only returns those of some hosts that are targets and not skipped.
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

// Checks returns those of some checks that are not skipped. A task must call it for checks
// that can be skipped; Build refuses a plan that contains a check of Skip.
func (s Scope) Checks(all ...steps.Step) []steps.Step {
	return slices.DeleteFunc(all, func(c steps.Step) bool { return slices.Contains(s.Skip, c.Meta().Name) })
}

// Has reports whether a flag of the pipeline is given.
func (s Scope) Has(flag string) bool { return slices.Contains(s.Flags, flag) }

// WithoutTargets returns the same scope without targets.
func (s Scope) WithoutTargets() Scope { s.Targets = nil; return s }

// Task selects which steps run where, and in what order. It contains no business logic: that
// is in the steps.
type Task struct {
	Name   string
	Module string           // part of the cluster that it belongs to; "": the module's name
	When   func(Scope) bool // nil: always
	Plan   func(Scope) Fragment
}

// In returns t as a task of a part of the cluster.
func (t Task) In(part string) Task { t.Module = part; return t }

// Module creates one part of a cluster. Plan uses do to expand each task, and joins the
// results with Seq, Par and Overlap; a task that its When leaves out is an empty Fragment.
type Module struct {
	Name string // of the tasks that name no other part
	Plan func(do func(Task) Fragment) Fragment
}

// Sequential is the Plan of a Module whose tasks run one after another.
func Sequential(tasks ...Task) func(do func(Task) Fragment) Fragment {
	return func(do func(Task) Fragment) Fragment {
		var out Fragment
		for _, t := range tasks {
			out = Seq(out, do(t))
		}
		return out
	}
}

// Build expands p for s into a graph, and checks that node ids are unique and that every
// output is written before it is read.
func Build(p Pipeline, s Scope) (*Graph, error) {
	var all []Fragment
	for _, m := range p.Modules {
		all = append(all, m.Plan(func(t Task) Fragment {
			if t.When != nil && !t.When(s) {
				return Fragment{}
			}
			f := t.Plan(s)
			label(f, cmp.Or(t.Module, m.Name), t.Name)
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

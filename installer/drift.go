package installer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
)

// Drift is one item of a cluster that differs from its record, or that could not be checked.
type Drift struct {
	Host string `json:"host"`
	Kind string `json:"kind"` // file, unit, kernel, object, package, account, host, step
	Name string `json:"name"` // "file /etc/hosts"; the step's name if it has no pieces
	Step string `json:"step,omitempty"`
	What string `json:"what,omitempty"` // what would repair it: "write /etc/hosts"
	Diff string `json:"diff,omitempty"` // lines removed and added; Secrets are not shown
	// NotChecked is the reason why it was not checked; "" if it was.
	NotChecked string `json:"unseen,omitempty"`
	// Blocks are steps that query programs and cannot be checked while this unit differs.
	Blocks []string `json:"hides,omitempty"`
}

// Counts reports whether the item counts as drift: it differs, or its state is unknown. An
// item that only lacks a bundle does not count.
func (d Drift) Counts() bool { return d.NotChecked != ErrNoBundle.Error() }

// DriftOptions configure Drifts.
type DriftOptions struct {
	Parallel int // how many hosts are checked concurrently
	Timeout  time.Duration
}

// stepTime is the default time limit for the check of one step on one host.
const stepTime = 2 * time.Minute

// Drifts checks what the steps of g have left on the hosts and returns all differences, sorted
// by host and then in the order of the plan. It changes nothing, and a difference does not end
// the other checks. Preflight checks, waits and steps that leave no trace are skipped. of
// returns nil for a host that was not reached; the caller knows why.
func Drifts(ctx context.Context, g *plan.Graph, of state.Of, o DriftOptions) ([]Drift, error) {
	l := &driftRun{of: of, options: o, board: &steps.Board{}, lost: map[string]bool{}, order: map[string]int{}}
	way := NewLeadSelector(g.Leads, of)
	inputs := driftInputs(g)
	for _, n := range g.Nodes { // in the order of the plan, so that outputs exist before they are read
		if leavesNothing(n) && !inputs[n] {
			continue
		}
		var group errgroup.Group
		group.SetLimit(max(o.Parallel, 1))
		for _, h := range n.Hosts {
			if plan.IsLead(h) {
				lead, err := way.Lead(ctx)
				if err != nil { // the caller knows why no master was reached
					continue
				}
				h = lead
			}
			if _, ok := l.order[h.Name]; !ok {
				l.order[h.Name] = len(l.order)
			}
			group.Go(func() error {
				l.at(ctx, n, h, inputs[n])
				return nil
			})
		}
		_ = group.Wait() // no function returns an error
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return l.sorted(g), nil
}

// leavesNothing reports whether there is nothing to check of a step on hosts.
func leavesNothing(n *plan.Node) bool {
	m := n.Step.Meta()
	return m.Always || m.WorkdirOnly || m.ReadOnly
}

// driftInputs returns the steps that only read hosts, and whose outputs the checked ones need:
// they are run.
func driftInputs(g *plan.Graph) map[*plan.Node]bool {
	inputs, needed := map[*plan.Node]bool{}, map[string]bool{}
	for _, n := range slices.Backward(g.Nodes) {
		m := n.Step.Meta()
		inputs[n] = m.ReadOnly && !m.WorkdirOnly && slices.ContainsFunc(m.Writes, func(k steps.AnyKey) bool { return needed[k.Name()] })
		if inputs[n] || !leavesNothing(n) {
			for _, k := range m.Reads {
				needed[k.Name()] = true
			}
		}
	}
	return inputs
}

// driftRun is one call of Drifts.
type driftRun struct {
	of      state.Of
	options DriftOptions
	board   *steps.Board
	order   map[string]int // of hosts

	mu    sync.Mutex
	lost  map[string]bool // hosts that no longer answer
	found []Drift
}

// at checks what one step left on one host. It runs an input.
func (l *driftRun) at(ctx context.Context, n *plan.Node, at manifest.Host, input bool) {
	facade := l.of(at)
	l.mu.Lock()
	gone := l.lost[at.Name]
	l.mu.Unlock()
	if facade == nil || gone {
		return
	}
	m := n.Step.Meta()
	limit := cmp.Or(l.options.Timeout, stepTime)
	ctx, cancel := context.WithTimeout(steps.WithNode(ctx, n.ID), limit)
	defer cancel()
	h := facade.WithBoard(l.board).InSet(n.Set).ForStep(m)
	if input {
		l.add(at.Name, m.Name, steps.ResourceState{Name: m.Name, Err: n.Step.Run(ctx, h)})
		return
	}
	absent, partial := h.Artifacts.(*absentArtifacts)
	if partial { // per step, to know which step requested a missing artifact
		absent = absent.fresh()
		h.Artifacts = absent
	}
	for _, p := range pieces(ctx, n.Step, h) {
		if partial && p.Err == nil && absent.asked() {
			p.Err = ErrNoBundle
		}
		l.add(at.Name, m.Name, p)
	}
}

// pieces checks the results of one step.
func pieces(ctx context.Context, s steps.Step, h *steps.Host) []steps.ResourceState {
	if d, ok := s.(steps.Drifter); ok {
		out := d.Drift(ctx, h)
		if len(s.Meta().Writes) == 0 {
			return out
		}
		if _, err := s.Precheck(ctx, h); err != nil { // other steps read its output
			return append(out, steps.ResourceState{Name: s.Meta().Name, Err: err})
		}
		return out
	}
	p := steps.ResourceState{Name: s.Meta().Name}
	v, err := s.Precheck(ctx, h)
	if err != nil || v == steps.Done {
		p.Err = err
		return []steps.ResourceState{p}
	}
	p.What = "run " + p.Name
	if d, ok := s.(steps.Differ); ok {
		if lines, err := d.Diff(ctx, h); err == nil && len(lines) > 0 {
			p.What, p.Diff, _ = strings.Cut(strings.Join(lines, "\n"), "\n")
		}
	}
	return []steps.ResourceState{p}
}

// add records one difference.
func (l *driftRun) add(host, step string, p steps.ResourceState) {
	if p.Err == nil && p.What == "" {
		return
	}
	d := Drift{Host: host, Kind: kindOf(p.Name), Name: p.Name, Step: step, What: p.What, Diff: p.Diff}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Err != nil {
		d.What, d.Diff, d.NotChecked = "", "", p.Err.Error()
		switch {
		case errors.Is(p.Err, ErrNoBundle):
			d.NotChecked = ErrNoBundle.Error()
		case errors.Is(p.Err, syscall.ENOTDIR):
			d.NotChecked = noKeys
		case isLost(p.Err):
			if l.lost[host] {
				return
			}
			l.lost[host] = true
			d = Drift{Host: host, Kind: "host", Name: "host " + host, NotChecked: p.Err.Error()}
		}
	}
	l.found = append(l.found, d)
}

// isLost reports whether a host no longer answers: its connection has ended, or a command
// exceeded its timeout. Every further step would wait as long.
func isLost(err error) bool {
	var broken *connector.BrokenError
	var late *connector.TimeoutError
	return errors.As(err, &broken) || errors.As(err, &late)
}

// kindOf returns the kind of a piece from the first word of its name.
func kindOf(name string) string {
	word, _, several := strings.Cut(name, " ")
	kind := map[string]string{
		"file": "file", "files": "file", "folder": "file", "link": "file", "lines": "file", "block": "file", "record": "file", "copy": "file", "unit": "unit", "sysctl": "kernel", "kernel": "kernel",
		"manifest": "object", "chart": "object", "packages": "package", "user": "account",
	}[word]
	switch {
	case kind != "":
		return kind
	case several:
		return "host" // of the whole machine: its name, its swap
	}
	return "step"
}

// sorted returns the differences by host, and then in the order of the plan.
func (l *driftRun) sorted(g *plan.Graph) []Drift {
	place := map[string]int{}
	for i, n := range g.Nodes {
		place[n.Step.Meta().Name] = i
	}
	slices.SortStableFunc(l.found, func(a, b Drift) int {
		return cmp.Or(cmp.Compare(l.order[a.Host], l.order[b.Host]), cmp.Compare(place[a.Step], place[b.Step]), cmp.Compare(a.Name, b.Name))
	})
	return withoutHidden(l.found)
}

// withoutHidden returns the differences without the steps that cannot be checked while a unit
// differs: a step that queries the runtime reports nothing useful while the runtime is
// stopped. The unit lists these steps.
func withoutHidden(all []Drift) []Drift {
	isUnit := func(d Drift) bool { return d.Kind == "unit" && d.NotChecked == "" }
	if !slices.ContainsFunc(all, isUnit) {
		return all
	}
	var out, steps []Drift
	for _, d := range all {
		if d.Kind == "step" && d.Counts() {
			steps = append(steps, d)
			continue
		}
		out = append(out, d)
	}
	for _, d := range steps {
		i := slices.IndexFunc(out, func(x Drift) bool { return isUnit(x) && x.Host == d.Host })
		if i < 0 { // it queries the cluster, which the host is part of
			i = slices.IndexFunc(out, isUnit)
		}
		if says := d.Name + " on " + d.Host; !slices.Contains(out[i].Blocks, says) {
			out[i].Blocks = append(out[i].Blocks, says)
		}
	}
	return out
}

// AsRecorded returns the cluster as it was applied, with only the hosts of the record: c
// specifies how they are reached.
func AsRecorded(c *manifest.Cluster, e *manifest.Existing) (*manifest.Cluster, error) {
	if e.Config.Metadata.Name != c.Metadata.Name {
		return nil, &state.OtherClusterError{Is: e.Config.Metadata.Name, Config: c.Metadata.Name}
	}
	var names []string
	for _, h := range e.Config.Spec.Hosts {
		names = append(names, h.Name)
	}
	return c.Applied(e.Config).Only(names), nil
}

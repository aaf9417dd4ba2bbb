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

// Drift is one thing of a cluster that is not as its record says, or that could not be
// looked at.
type Drift struct {
	Host string `json:"host"`
	Kind string `json:"kind"` // file, unit, kernel, object, package, account, host, step
	Name string `json:"name"` // "file /etc/hosts"; the step's own where it has no pieces
	Step string `json:"step,omitempty"`
	What string `json:"what,omitempty"` // what would mend it: "write /etc/hosts"
	Diff string `json:"diff,omitempty"` // lines that come and go; Secrets are not shown
	// Unseen says why it was not looked at: it may or may not be as it should be.
	Unseen string `json:"unseen,omitempty"`
	// Hides are steps that ask programs, and cannot be told while this unit differs.
	Hides []string `json:"hides,omitempty"`
}

// Counts tells whether it speaks against the cluster: it differs, or nobody can say
// whether it does. What lacks a bundle alone does not count.
func (d Drift) Counts() bool { return d.Unseen != ErrNoBundle.Error() }

// DriftOptions say how Drifts looks.
type DriftOptions struct {
	Parallel int // how many hosts are looked at at once
	Timeout  time.Duration
}

// stepTime is how long a look at one step on one host may take, unless it is said otherwise.
const stepTime = 2 * time.Minute

// Drifts looks at what the steps of g have left on the hosts that of gives, and tells what
// is not so by now, sorted by host and then in the order of the plan. Nothing is changed,
// and no look ends because of what another one found. Checks, waits and what leaves no trace
// are passed over. of gives nil for a host that was not reached: the caller knows why.
func Drifts(ctx context.Context, g *plan.Graph, of state.Of, o DriftOptions) ([]Drift, error) {
	l := &look{of: of, options: o, board: &steps.Board{}, lost: map[string]bool{}, order: map[string]int{}}
	way := NewWayIn(g.Leads, of)
	for _, n := range g.Nodes { // in this order what a look gives to another one is there
		m := n.Step.Meta()
		if m.Always || m.Here || m.LooksOnly {
			continue
		}
		var group errgroup.Group
		group.SetLimit(max(o.Parallel, 1))
		for _, h := range n.Hosts {
			if plan.IsLead(h) {
				lead, err := way.Lead(ctx)
				if err != nil { // the caller knows why each master was not reached
					continue
				}
				h = lead
			}
			if _, ok := l.order[h.Name]; !ok {
				l.order[h.Name] = len(l.order)
			}
			group.Go(func() error {
				l.at(ctx, n, h)
				return nil
			})
		}
		_ = group.Wait() // no function gives an error
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return l.sorted(g), nil
}

// look is one call of Drifts.
type look struct {
	of      state.Of
	options DriftOptions
	board   *steps.Board
	order   map[string]int // of hosts

	mu    sync.Mutex
	lost  map[string]bool // hosts that answer no more
	found []Drift
}

// at looks at what one step left on one host.
func (l *look) at(ctx context.Context, n *plan.Node, at manifest.Host) {
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
	absent, partial := h.Artifacts.(*absentArtifacts)
	if partial { // who asks for what is not there is told apart step by step
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

// pieces looks at what one step brings about.
func pieces(ctx context.Context, s steps.Step, h *steps.Host) []steps.Piece {
	if d, ok := s.(steps.Drifter); ok {
		out := d.Drift(ctx, h)
		if len(s.Meta().Writes) == 0 {
			return out
		}
		if _, err := s.Precheck(ctx, h); err != nil { // it gives what others read
			return append(out, steps.Piece{Name: s.Meta().Name, Err: err})
		}
		return out
	}
	p := steps.Piece{Name: s.Meta().Name}
	v, err := s.Precheck(ctx, h)
	if err != nil || v == steps.Done {
		p.Err = err
		return []steps.Piece{p}
	}
	p.What = "run " + p.Name
	if d, ok := s.(steps.Differ); ok {
		if lines, err := d.Diff(ctx, h); err == nil && len(lines) > 0 {
			p.What, p.Diff, _ = strings.Cut(strings.Join(lines, "\n"), "\n")
		}
	}
	return []steps.Piece{p}
}

// add takes down what a look found.
func (l *look) add(host, step string, p steps.Piece) {
	if p.Err == nil && p.What == "" {
		return
	}
	d := Drift{Host: host, Kind: kindOf(p.Name), Name: p.Name, Step: step, What: p.What, Diff: p.Diff}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Err != nil {
		d.What, d.Diff, d.Unseen = "", "", p.Err.Error()
		switch {
		case errors.Is(p.Err, ErrNoBundle):
			d.Unseen = ErrNoBundle.Error()
		case errors.Is(p.Err, syscall.ENOTDIR):
			d.Unseen = noKeys
		case isLost(p.Err):
			if l.lost[host] {
				return
			}
			l.lost[host] = true
			d = Drift{Host: host, Kind: "host", Name: "host " + host, Unseen: p.Err.Error()}
		}
	}
	l.found = append(l.found, d)
}

// isLost tells whether a host answers no more: its connection has ended, or a command was
// not done when its patience was. Every further step would wait as long.
func isLost(err error) bool {
	var broken *connector.BrokenError
	var late *connector.TimeoutError
	return errors.As(err, &broken) || errors.As(err, &late)
}

// kindOf is the kind of a piece, by the first word of its name.
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
		return "host" // of the machine as a whole: its name, its swap
	}
	return "step"
}

// sorted gives what was found by host, and then in the order of the plan.
func (l *look) sorted(g *plan.Graph) []Drift {
	place := map[string]int{}
	for i, n := range g.Nodes {
		place[n.Step.Meta().Name] = i
	}
	slices.SortStableFunc(l.found, func(a, b Drift) int {
		return cmp.Or(cmp.Compare(l.order[a.Host], l.order[b.Host]), cmp.Compare(place[a.Step], place[b.Step]), cmp.Compare(a.Name, b.Name))
	})
	return hidden(l.found)
}

// hidden gives what was found without the steps that cannot be told while a unit differs:
// what asks the runtime says nothing of itself while that is stopped. The unit names them.
func hidden(all []Drift) []Drift {
	isUnit := func(d Drift) bool { return d.Kind == "unit" && d.Unseen == "" }
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
		if i < 0 { // it asks the cluster, of which the host is part
			i = slices.IndexFunc(out, isUnit)
		}
		if says := d.Name + " on " + d.Host; !slices.Contains(out[i].Hides, says) {
			out[i].Hides = append(out[i].Hides, says)
		}
	}
	return out
}

// AsRecorded gives the cluster as it was applied, with the hosts of the record alone: c
// says how they are reached.
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

package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// runGuards runs the undo steps of each host on which a guarded step failed, inner guards first,
// and of each host whose fragment is incomplete. Hosts run in parallel.
func (r *run) runGuards(ctx context.Context) {
	guards := map[string][]*plan.Guard{}
	for _, u := range slices.Backward(r.finished) {
		if u.ok {
			continue
		}
		for _, g := range u.node.Guards {
			if host := g.HostOf(u.at); !slices.Contains(guards[host], g) {
				guards[host] = append(guards[host], g)
			}
		}
	}
	for _, g := range r.incomplete() {
		if host := g.HostOf(""); !slices.Contains(guards[host], g) {
			guards[host] = append(guards[host], g)
		}
	}
	var wg sync.WaitGroup
	for host, all := range guards {
		wg.Go(func() {
			r.commands <- struct{}{}
			defer func() { <-r.commands }()
			for _, g := range all {
				if !r.runGuard(ctx, g, host) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// incomplete returns the guards of fragments for one host that have changed something and are not
// complete.
func (r *run) incomplete() []*plan.Guard {
	begun, left := map[*plan.Guard]bool{}, map[*plan.Guard]bool{}
	var out []*plan.Guard
	for _, u := range r.all {
		for _, g := range u.node.Guards {
			if !g.ForOneHost() {
				continue
			}
			if !slices.Contains(out, g) {
				out = append(out, g)
			}
			begun[g] = begun[g] || u.ok && !u.meta.ReadOnly
			left[g] = left[g] || !u.ok
		}
	}
	return slices.DeleteFunc(out, func(g *plan.Guard) bool { return !begun[g] || !left[g] })
}

// runGuard runs the undo steps of one host, and reports whether all succeeded.
func (r *run) runGuard(ctx context.Context, g *plan.Guard, host string) bool {
	// The completed steps are undone from here on. They are reported first: if the run is
	// killed meanwhile, the journal must not list them as done.
	var along []*unit
	for _, u := range slices.Backward(r.all) {
		if g.HostOf(u.at) == host && u.ok && !u.meta.ReadOnly && slices.Contains(u.node.Guards, g) {
			u.guardUndone, along = true, append(along, u)
			r.report(u, Event{Outcome: RolledBack})
		}
	}
	for _, n := range g.UndoNodes(host) {
		for _, h := range n.Hosts {
			u, err := r.undoUnit(ctx, n, h)
			r.report(u, Event{Outcome: Started})
			if err == nil {
				_, _, err = r.runOnce(ctx, u)
			}
			if err != nil {
				err = &steps.Error{Node: n.ID, Host: u.name(), Err: err}
				r.mu.Lock()
				r.errs = append(r.errs, err)
				r.mu.Unlock()
			}
			r.report(u, Event{Outcome: RolledBack, Err: err})
			if err != nil {
				for _, u := range along {
					u.left = true
				}
				return false
			}
		}
	}
	return true
}

// undoUnit returns one undo step. It may also run on the lead.
func (r *run) undoUnit(ctx context.Context, n *plan.Node, h manifest.Host) (*unit, error) {
	meta := n.Step.Meta()
	u := &unit{node: n, meta: &meta, at: h.Name}
	if plan.IsLead(h) {
		return u, r.lead(ctx, u)
	}
	r.place(u, r.Host(h).WithBoard(r.board))
	return u, nil
}

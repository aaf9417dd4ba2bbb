package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// goBack takes each host on which a guarded step failed back to before the guarded
// part, inner parts first. Hosts go back side by side.
func (r *run) goBack(ctx context.Context) {
	guards := map[string][]*plan.Guard{}
	for _, u := range slices.Backward(r.finished) {
		if u.ok {
			continue
		}
		for _, g := range u.node.Guards {
			if host := g.For(u.at); !slices.Contains(guards[host], g) {
				guards[host] = append(guards[host], g)
			}
		}
	}
	var wg sync.WaitGroup
	for host, all := range guards {
		wg.Go(func() {
			r.commands <- struct{}{}
			defer func() { <-r.commands }()
			for _, g := range all {
				if !r.back(ctx, g, host) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// back goes the way back of one host, and tells whether it came to its end.
func (r *run) back(ctx context.Context, g *plan.Guard, host string) bool {
	// What was done there is undone from here on. It is said before it is so: a run that
	// is killed meanwhile must not leave a journal that holds it done.
	var along []*unit
	for _, u := range slices.Backward(r.all) {
		if g.For(u.at) == host && u.ok && !u.meta.LooksOnly && slices.Contains(u.node.Guards, g) {
			u.wentBack, along = true, append(along, u)
			r.report(u, Event{Outcome: RolledBack})
		}
	}
	for _, n := range g.Back(host) {
		for _, h := range n.Hosts {
			u, err := r.backUnit(ctx, n, h)
			r.report(u, Event{Outcome: Started})
			if err == nil {
				_, _, err = r.one(ctx, u)
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

// backUnit is one step of a way back. It may run on the lead, too.
func (r *run) backUnit(ctx context.Context, n *plan.Node, h manifest.Host) (*unit, error) {
	if plan.IsLead(h) {
		u := r.unit(n, h.Name, nil)
		return u, r.lead(ctx, u)
	}
	return r.unit(n, h.Name, r.Host(h).WithBoard(r.board)), nil
}

package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
)

// unit is one step on one host.
type unit struct {
	node  *plan.Node
	meta  *steps.Meta  // shared by the units of a node
	at    string       // the host's name in the plan
	on    string       // name of the host that it runs on; "" until it starts
	from  *steps.Host  // the host that it runs on, without what it declares; nil for a step on the lead
	host  *steps.Host  // nil until it starts, and when nothing can need it any more
	lane  []*unit      // waits for these on its own host
	all   []*barrier   // waits for these on all hosts
	end   *barrier     // the barrier of its node
	waits atomic.Int64 // how many of lane and all have not ended
	next  []*unit      // have it in lane
	ran   bool

	// Valid when it has ended, with or without success.
	ok     bool
	found  bool // a check that reported findings
	unsure bool // in a dry run: this step, or one before it, would still have to run
	failed bool // failed by itself, not by an interruption

	// State of the rollback after the run.
	left        bool // could not be undone
	guardUndone bool // undone by the undo steps of a guard
}

// check reports whether u is a check. A wait is not: it checks the results of other steps.
func (u *unit) check() bool { return u.meta.ReadOnly && u.meta.Always }

// name returns the name of u's host for reports.
func (u *unit) name() string { return cmp.Or(u.on, u.at) }

// units expands the graph into steps on hosts, with their dependencies.
func (r *run) units() []*unit {
	byNode := map[*plan.Node]map[string]*unit{}
	ends := map[*plan.Node]*barrier{}
	hosts := map[string]*steps.Host{}
	var all []*unit
	for _, n := range r.graph.Nodes { // dependencies point backwards: everything a unit waits for exists
		byNode[n] = map[string]*unit{}
		ends[n] = &barrier{left: len(n.Hosts)}
		meta := n.Step.Meta()
		for _, h := range n.Hosts {
			if hosts[h.Name] == nil && !plan.IsLead(h) {
				hosts[h.Name] = r.Host(h).WithBoard(r.board)
			}
			u := &unit{node: n, meta: &meta, at: h.Name, from: hosts[h.Name], end: ends[n]}
			for _, d := range n.Deps {
				if b := ends[d.On]; !d.Lane && b.left > 0 { // without hosts there is nothing to wait for
					u.all, b.next = append(u.all, b), append(b.next, u)
				} else if before := byNode[d.On][h.Name]; d.Lane && before != nil {
					u.lane, before.next = append(u.lane, before), append(before.next, u)
				}
			}
			u.waits.Store(int64(len(u.lane) + len(u.all)))
			byNode[n][h.Name] = u
			all = append(all, u)
		}
	}
	return all
}

// start walks u. A unit has a goroutine only from here on: a plan for a thousand hosts has tens of
// thousands of units, and most wait for others most of the time.
func (r *run) start(ctx context.Context, u *unit) {
	r.walks.Go(func() {
		defer r.follow(ctx, u)
		r.walk(ctx, u)
	})
}

// follow starts what waited for u alone.
func (r *run) follow(ctx context.Context, u *unit) {
	ready := u.next
	if u.end.pass(u) {
		ready = slices.Concat(ready, u.end.next)
	}
	for _, n := range ready {
		if n.waits.Add(-1) == 0 {
			r.start(ctx, n)
		}
	}
}

// barrier is a node on all of its hosts, for units that wait for all of them: a thousand hosts
// that wait for a thousand hosts would otherwise need a million links.
type barrier struct {
	mu   sync.Mutex
	left int     // units that have not ended
	next []*unit // wait for all of them

	// Valid when none is left.
	lost   bool // one failed, or did not start
	found  bool // one reported findings
	unsure bool
}

// pass records that a unit of the node has ended, and reports whether it was the last.
func (b *barrier) pass(u *unit) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = b.lost || !u.ok && !u.found
	b.found = b.found || !u.ok && u.found
	b.unsure = b.unsure || u.unsure
	b.left--
	return b.left == 0
}

package ssh

import (
	"context"
	"sync"
)

// gate lets so many commands in at a time, in the order they came.
type gate struct {
	mu     sync.Mutex
	limit  int
	inside int
	queue  []chan struct{}
}

func newGate(limit int) *gate { return &gate{limit: limit} }

// enter waits for a place.
func (g *gate) enter(ctx context.Context) error {
	g.mu.Lock()
	if g.inside < g.limit && len(g.queue) == 0 {
		g.inside++
		g.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	g.queue = append(g.queue, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	for i, t := range g.queue {
		if t == turn {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			g.mu.Unlock()
			return context.Cause(ctx)
		}
	}
	g.mu.Unlock()
	g.leave() // the turn came at the same moment
	return context.Cause(ctx)
}

// leave gives the place to the next.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.admit()
}

func (g *gate) admit() {
	for g.inside < g.limit && len(g.queue) > 0 {
		g.inside++
		close(g.queue[0])
		g.queue = g.queue[1:]
	}
}

// tooMany is told by one inside that the server took no more: those besides it
// are what the server takes. It reports false where there is nobody besides: then
// the server takes none at all.
func (g *gate) tooMany() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside <= 1 {
		return false
	}
	g.limit = max(1, min(g.limit, g.inside-1))
	return true
}

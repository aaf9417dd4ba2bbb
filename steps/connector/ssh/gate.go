package ssh

import (
	"context"
	"sync"
)

// gate limits the number of parallel commands. Waiting commands enter in FIFO order.
type gate struct {
	mu     sync.Mutex
	limit  int
	inside int
	queue  []chan struct{}
}

func newGate(limit int) *gate { return &gate{limit: limit} }

// enter waits until the command may start.
func (g *gate) enter(ctx context.Context) error {
	g.mu.Lock()
	if g.inside < g.limit && len(g.queue) == 0 {
		g.inside++
		g.mu.Unlock()
		return nil
	}
	admitted := make(chan struct{})
	g.queue = append(g.queue, admitted)
	g.mu.Unlock()
	select {
	case <-admitted:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	for i, t := range g.queue {
		if t == admitted {
			g.queue = append(g.queue[:i], g.queue[i+1:]...)
			g.mu.Unlock()
			return context.Cause(ctx)
		}
	}
	g.mu.Unlock()
	g.leave() // admitted at the same moment
	return context.Cause(ctx)
}

// leave ends a command and admits the next one.
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

// tooMany lowers the limit after the server has refused a command that entered: the limit
// becomes the number of the other commands. It returns false if there are none, which
// means that the server accepts no commands at all.
func (g *gate) tooMany() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside <= 1 {
		return false
	}
	g.limit = max(1, min(g.limit, g.inside-1))
	return true
}

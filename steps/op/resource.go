package op

import (
	"context"
	"fmt"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Fn does something to a host.
type Fn = func(context.Context, *steps.Host) error

// Change is the difference between a host and a wish.
type Change struct {
	What  string // "write /etc/hosts"
	Diff  string // lines that come and go, where that can be shown
	Apply Fn
	// Undo puts back what was there, however far Apply came; nil when there is
	// nothing to put back. A removal is never undone: it is run again.
	Undo Fn
}

// Resource is one piece of a host's state.
type Resource interface {
	fmt.Stringer // "file /etc/hosts"
	// Want gives the change that brings the resource about, nil when it is so
	// already. earlierChanged says that a resource before it in the same step
	// changed: a unit restarts for that.
	Want(ctx context.Context, h *steps.Host, earlierChanged bool) (*Change, error)
	// Gone gives the change that takes it away, or puts back what was there
	// before kubexm came; nil when it is so already. What kubexm never changed is
	// left alone.
	Gone(ctx context.Context, h *steps.Host) (*Change, error)
	// Needs are the artifacts that it opens.
	Needs() []manifest.Need
}

// Around is a Resource that depends on those before it in its list: a unit on
// its file, its program and its configuration.
type Around interface {
	Resource
	// Expect gives what is to be done before the first of them changes. Its Undo
	// runs after all of theirs. Apply may be called again in a later run.
	Expect(ctx context.Context, h *steps.Host) (*Change, error)
	// Settle gives what is to be done after all of them are gone; nil when
	// nothing is left to do.
	Settle(ctx context.Context, h *steps.Host) (*Change, error)
}

// NoNeeds is embedded by resources that open no artifact.
type NoNeeds struct{}

// Needs gives none.
func (NoNeeds) Needs() []manifest.Need { return nil }

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
	Undo  Fn // puts back what Apply found; nil when there is nothing to put back
}

// Resource is one piece of a host's state.
type Resource interface {
	fmt.Stringer // "file /etc/hosts"
	// Want gives the change that brings the resource about, nil when it is so
	// already. earlierChanged says that a resource before it in the same step
	// changed: a unit restarts for that.
	Want(ctx context.Context, h *steps.Host, earlierChanged bool) (*Change, error)
	// Gone gives the change that takes it away, or puts back what was there
	// before kubexm came; nil when it is so already.
	Gone(ctx context.Context, h *steps.Host) (*Change, error)
	// Needs are the artifacts that it opens.
	Needs() []manifest.Need
}

// noNeeds is embedded by resources that open no artifact.
type noNeeds struct{}

// Needs gives none.
func (noNeeds) Needs() []manifest.Need { return nil }

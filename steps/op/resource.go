package op

import (
	"context"
	"fmt"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Fn acts on a host.
type Fn = func(context.Context, *steps.Host) error

// Change is what has to be done to bring a host into the desired state.
type Change struct {
	What  string // "write /etc/hosts"
	Diff  string // added and removed lines, if available
	Apply Fn
	// Undo restores the state before Apply, no matter how far Apply got. Nil means that
	// there is nothing to restore. Removals have no Undo: they are run again.
	Undo Fn
}

// Resource is one part of a host's state. Want and Gone compare the host with the desired
// state and must not change anything; the returned Change does.
type Resource interface {
	// String returns the resource's kind and name: "file /etc/hosts". It identifies the
	// resource's record on hosts and must not change between versions of kubexm.
	fmt.Stringer
	// Want returns the change that creates or updates the resource, or nil if it has the
	// desired state. earlierChanged reports that a resource before it in the same step
	// was changed: a unit then restarts.
	Want(ctx context.Context, h *steps.Host, earlierChanged bool) (*Change, error)
	// Gone returns the change that removes the resource, or restores its original state.
	// It returns nil if that is done already, or if kubexm never changed the resource.
	Gone(ctx context.Context, h *steps.Host) (*Change, error)
	// Needs returns the artifacts that the resource opens.
	Needs() []manifest.Need
}

// Around is a Resource that depends on the resources before it in its list: a unit
// depends on its file, its program and its configuration.
type Around interface {
	Resource
	// Expect returns the change to apply before the first of them changes. Its Undo runs
	// after all of theirs. A later run may call Apply again.
	Expect(ctx context.Context, h *steps.Host) (*Change, error)
	// Settle returns the change to apply after all of them have been removed, or nil if
	// there is nothing to do.
	Settle(ctx context.Context, h *steps.Host) (*Change, error)
}

// NoNeeds is embedded by resources that open no artifacts.
type NoNeeds struct{}

// Needs returns nil.
func (NoNeeds) Needs() []manifest.Need { return nil }

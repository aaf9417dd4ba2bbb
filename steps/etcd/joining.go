package etcd

import (
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// joining is joinFile if an interrupted run has left it: its member may be a learner.
type joining struct{ cluster *manifest.Cluster }

func (joining) String() string { return "file " + joinFile }

// Needs returns nil.
func (joining) Needs() []manifest.Need { return nil }

// Want promotes the member if it is a learner, and removes the file once the member answers.
// The replacement of a member creates the file, and a member with data ignores it. Without it a
// member that exited before it had data would bootstrap a separate etcd.
func (j joining) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	if exists, err := h.Exists(ctx, joinFile); err != nil || !exists {
		return nil, err
	}
	return &op.Change{What: "finish joining, and remove " + joinFile, Apply: func(ctx context.Context, h *steps.Host) error {
		m := member{Unit: op.Unit{Name: unit}, cluster: j.cluster}
		return restartLock(h).LockedContext(ctx, func() error { return m.finishJoin(ctx, h, survivors(j.cluster, h)) })
	}}, nil
}

// Gone removes the file.
func (joining) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	if ours, err := op.Recorded(ctx, h, unitFile(h.Cluster)); err != nil || !ours {
		return nil, err
	}
	if exists, err := h.Exists(ctx, joinFile); err != nil || !exists {
		return nil, err
	}
	return &op.Change{What: "remove " + joinFile, Apply: func(ctx context.Context, h *steps.Host) error { return h.Remove(ctx, joinFile) }}, nil
}

package op

import (
	"cmp"
	"context"
	"time"

	"github.com/mensylisir/kubexm/steps"
)

// Do is for what has no resource form: kubeadm init, a member added, a wait.
// Without Done there is nothing to observe, and Meta.Always has to say so.
type Do struct {
	M    steps.Meta
	Done func(context.Context, *steps.Host) (bool, error)
	Act  Fn
	Undo Fn // nil: it cannot be undone
}

// Unwound is the Undo of a Do whose Act registers all that is to be undone.
func Unwound(context.Context, *steps.Host) error { return nil }

// Meta gives M, Always where there is nothing to observe, and OneWay where a change has
// no Undo.
func (d *Do) Meta() steps.Meta {
	m := d.M
	m.Always = m.Always || d.Done == nil
	m.OneWay = m.OneWay || d.Undo == nil && !m.LooksOnly
	return m
}

// Precheck asks Done.
func (d *Do) Precheck(ctx context.Context, h *steps.Host) (steps.Verdict, error) {
	if d.Done == nil {
		return steps.Todo, nil
	}
	done, err := d.Done(ctx, h)
	if err != nil || !done {
		return steps.Todo, err
	}
	return steps.Done, nil
}

// Run acts.
func (d *Do) Run(ctx context.Context, h *steps.Host) error { return d.Act(ctx, h) }

// Rollback undoes what Act registered, then calls Undo.
func (d *Do) Rollback(ctx context.Context, h *steps.Host) error {
	if err := h.Unwind(ctx); err != nil || d.Undo == nil {
		return err
	}
	return d.Undo(ctx, h)
}

// Check is a step that only looks: it is Done when it finds nothing, and fails
// with what it found. Findings that are warnings or notes let it pass; it reports them.
// A finding that names no host is of the host that is looked at.
func Check(name string, look func(context.Context, *steps.Host) (steps.Findings, error), opts ...Option) steps.Step {
	m := steps.Meta{Name: name, Always: true, LooksOnly: true, Timeout: time.Minute}
	for _, o := range opts {
		o(&m)
	}
	return &Do{
		M: m,
		Act: func(ctx context.Context, h *steps.Host) error {
			found, err := look(ctx, h)
			if err != nil {
				return err
			}
			var bad steps.Findings
			for _, f := range found {
				f.Host, f.Check = cmp.Or(f.Host, h.Name), name
				if f.Level() == steps.LevelError {
					bad = append(bad, f)
					continue
				}
				h.Report(f)
			}
			if len(bad) > 0 {
				return bad
			}
			return nil
		},
	}
}

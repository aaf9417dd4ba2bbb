package op

import (
	"cmp"
	"context"
	"time"

	"github.com/mensylisir/kubexm/steps"
)

// Do is a step that has no resource form: kubeadm init, adding an etcd member, a wait.
// Without Done it has no observable result, and Meta reports Always.
type Do struct {
	M    steps.Meta
	Done func(context.Context, *steps.Host) (bool, error)
	Act  Fn
	Undo Fn // nil: the step cannot be undone
}

// Unwound is the Undo of a Do whose Act registers all its undo functions with
// Host.OnRollback.
func Unwound(context.Context, *steps.Host) error { return nil }

// Meta returns M. It sets Always if Done is nil, and OneWay if a step that changes
// something has no Undo.
func (d *Do) Meta() steps.Meta {
	m := d.M
	m.Always = m.Always || d.Done == nil
	m.OneWay = m.OneWay || d.Undo == nil && !m.ReadOnly
	return m
}

// Precheck calls Done.
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

// Run calls Act.
func (d *Do) Run(ctx context.Context, h *steps.Host) error { return d.Act(ctx, h) }

// Rollback calls the undo functions that Act registered, then Undo.
func (d *Do) Rollback(ctx context.Context, h *steps.Host) error {
	if err := h.Unwind(ctx); err != nil || d.Undo == nil {
		return err
	}
	return d.Undo(ctx, h)
}

// Check returns a step that calls inspect, which must not change anything. The step
// fails with the findings of LevelError, and only reports warnings and notes. A finding
// without a host gets the host that is inspected.
func Check(name string, inspect func(context.Context, *steps.Host) (steps.Findings, error), opts ...Option) steps.Step {
	m := steps.Meta{Name: name, Always: true, ReadOnly: true, Timeout: time.Minute}
	for _, o := range opts {
		o(&m)
	}
	return &Do{
		M: m,
		Act: func(ctx context.Context, h *steps.Host) error {
			found, err := inspect(ctx, h)
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

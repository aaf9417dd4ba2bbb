package etcd

import (
	"context"
	"errors"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Restart restarts the host's etcd service if all members are healthy, and waits until it
// answers.
func Restart(c *manifest.Cluster) steps.Step {
	return op.Again("etcd.restart", func(ctx context.Context, h *steps.Host) error {
		if err := MayStop(ctx, c, h); err != nil {
			return err
		}
		if err := op.RestartUnit(ctx, h, unit); err != nil {
			return err
		}
		return answers(ctx, c, h)
	})
}

// MayStop returns why the member of a host must not be stopped now; nil if it may be. It
// repeats the check of the preceding gate, because the state may have changed since.
func MayStop(ctx context.Context, c *manifest.Cluster, h *steps.Host) error {
	missing, err := StopBlockers(ctx, c, h)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return steps.Advise(errors.New("etcd on "+h.Name+" was not stopped: "+strings.Join(missing, "; ")), "repair that first: without this member etcd may lose its quorum")
	}
	return nil
}

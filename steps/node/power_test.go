package node_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestABootInBetweenForgetsNothing: a host that boots after any command of the
// installation, or of the removal, is as it was before in the end.
func TestABootInBetweenForgetsNothing(t *testing.T) {
	c := steptest.Case{Cluster: steptest.Cluster(t, steptest.Small), Before: steptest.Nft}
	inBetween(t, c, node.Kernel(c.Cluster), node.ResetKernel(c.Cluster))
}

// TestABootInBetweenLeavesHostsReady is the same for all that makes a host ready.
// What is there before a boot alone is not what comes back after one.
func TestABootInBetweenLeavesHostsReady(t *testing.T) {
	for name, r := range ready {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := steptest.Case{Before: func(s *conntest.Sim) { r.before(s); s.Reboot() }}
			step := r.install()
			if v, err := step.Precheck(t.Context(), c.NewHost(t, c.Sim(t), step)); err != nil {
				t.Fatal(err)
			} else if v == steps.Todo {
				inBetween(t, c, step, r.remove())
			}
		})
	}
}

// inBetween boots a host after each command of a step and of its inverse.
func inBetween(t *testing.T, c steptest.Case, install, remove steps.Step) {
	t.Helper()
	done := func(t *testing.T, s *conntest.Sim, step steps.Step) {
		t.Helper()
		h := c.NewHost(t, s, step)
		v, err := step.Precheck(t.Context(), h)
		if err == nil && v == steps.Todo {
			err = step.Run(t.Context(), h)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, removing := range []bool{false, true} {
		for at := 1; ; at++ {
			s := c.Sim(t)
			s.KeepDisk()
			first := s.Snapshot()
			cut := install
			if removing {
				done(t, s, install)
				cut = remove
			}
			h := c.NewHost(t, s, cut)
			s.Break(conntest.Fault{At: at, After: true, Stay: true})
			err := cut.Run(t.Context(), h)
			s.Mend()
			if err == nil {
				break
			}
			s.Crash(func(n int) int { return at % n }, func() bool { return true })
			if !removing {
				done(t, s, install)
			}
			done(t, s, remove)
			done(t, s, node.ForgetRecords())
			if d := conntest.Diff(first, s.Snapshot()); d != "" {
				t.Errorf("a boot after command %d, removing=%t:\n%s", at, removing, d)
			}
		}
	}
}

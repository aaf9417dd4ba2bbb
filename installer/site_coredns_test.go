package installer_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
)

// noting is a step that notes what is found of it.
type noting struct {
	steps.Step
	found *[]steps.Verdict
}

func (x noting) Precheck(ctx context.Context, h *steps.Host) (steps.Verdict, error) {
	v, err := x.Step.Precheck(ctx, h)
	*x.found = append(*x.found, v)
	return v, err
}

// TestCoreDNSComesAfterTheNetwork: kubeadm init leaves CoreDNS out, and its own step installs it,
// once.
func TestCoreDNSComesAfterTheNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "site")
		var found []steps.Verdict
		for range 2 {
			if err := s.Run(pipeline.Create, func(n *plan.Node) {
				if n.Step.Meta().Name == "kubeadm.install-coredns" {
					n.Step = noting{n.Step, &found}
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		if want := []steps.Verdict{steps.Todo, steps.Done, steps.Done}; !slices.Equal(found, want) {
			t.Errorf("found %v, want %v: before it runs, after it, and in the second run", found, want)
		}
	})
}

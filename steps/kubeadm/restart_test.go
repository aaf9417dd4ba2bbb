package kubeadm

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestRestartLaws: each run restarts, says so itself, and leaves the files of the host.
func TestRestartLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	for _, step := range []steps.Step{RestartAPIServer(), RestartControllerManager(), RestartScheduler(), RestartMember(c), controlplane.RestartKubelet()} {
		t.Run(step.Meta().Name, func(t *testing.T) {
			steptest.Again(t, steptest.Case{Cluster: c, Before: func(s *conntest.Sim) {
				steptest.ExistingCluster(c)(s)
				s.AddUnit("kubelet.service", "[Service]\nExecStart=/usr/local/bin/kubelet\n", true, true)
			}}, step)
		})
	}
}

// TestAPodThatIsNotRestarted is named, with where to look.
func TestAPodThatIsNotRestarted(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	for name, row := range map[string]struct {
		sick bool // before it is stopped
		says string
	}{
		"it does not run":       {true, "no pod of kube-scheduler runs on node1"},
		"it does not come back": {false, "kube-scheduler does not run on node1 3m0s after it was stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var k *steptest.Kube
				kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) { k = steptest.ExistingKube(c, s) }}
				s := kase.Sim(t)
				fall := func() { k.Unhealthy = []string{"kube-scheduler-node1"} }
				if row.sick {
					fall()
				} else {
					k.OnSandboxStop = fall
				}
				step := RestartScheduler()
				err := step.Run(t.Context(), kase.NewHost(t, s, step))
				if err == nil || !strings.Contains(err.Error(), row.says) || !strings.Contains(strings.Join(steps.Advice(err), " "), "journalctl -u kubelet") {
					t.Errorf("%v: %s", err, steps.Advice(err))
				}
			})
		})
	}
}

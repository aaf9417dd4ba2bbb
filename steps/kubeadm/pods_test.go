package kubeadm_test

import (
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestPodsThatResetLeaves: they are removed while the network plugin's files are there.
func TestPodsThatResetLeaves(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	_, sims := steptest.ExistingKubeWith(t, c)
	s := sims["node1"]
	const plugin = "/etc/cni/net.d/10-flannel.conflist"
	s.AddFile(plugin, "{}\n", 0o644)
	left := []string{"aaa", "bbb"}
	s.HandleProgram("crictl", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		switch {
		case slices.Contains(c.Argv, "pods"):
			return connector.Result{Stdout: []byte("aaa\nbbb\n")}, true
		case slices.Contains(c.Argv, "rmp"):
			if _, ok := s.File(plugin); !ok {
				t.Errorf("%s is gone when %q runs", plugin, c.Argv)
			}
			left = slices.DeleteFunc(left, func(id string) bool { return id == c.Argv[len(c.Argv)-1] })
		}
		return connector.Result{}, true
	})
	step := kubeadm.ResetMaster()
	if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	if _, there := s.File(plugin); len(left) > 0 || there {
		t.Errorf("pods %q are left; the network plugin's file is there: %t", left, there)
	}
}

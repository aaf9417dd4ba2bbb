package kubeadm_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

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

// TestPodsWhoseNetworkIsGone: a network plugin that asks the API server cannot take pods off the network
// when that has ended. They go without it.
func TestPodsWhoseNetworkIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := steptest.Cluster(t, steptest.Small)
		_, sims := steptest.ExistingKubeWith(t, c)
		s := sims["node1"]
		s.AddFile("/etc/cni/net.d/10-calico.conflist", "{}\n", 0o644)
		left, notices := []string{"aaa", "bbb"}, 3
		s.HandleProgram("crictl", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			switch {
			case slices.Contains(c.Argv, "pods"):
				return connector.Result{Stdout: []byte(strings.Join(left, "\n"))}, true
			case slices.Contains(c.Argv, "rmp"):
				if _, ok := s.File("/etc/cni/net.d/00-kubexm-reset.conflist"); ok { // the runtime has read it at the second time
					notices--
				}
				if notices > 0 {
					return connector.Result{Exit: 1, Stderr: []byte("dial tcp 10.96.0.1:443: connect: connection refused\n")}, true
				}
				left = slices.DeleteFunc(left, func(id string) bool { return id == c.Argv[len(c.Argv)-1] })
			}
			return connector.Result{}, true
		})
		step := kubeadm.ResetMaster()
		if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
		if _, there := s.File("/etc/cni/net.d/00-kubexm-reset.conflist"); len(left) > 0 || there {
			t.Errorf("pods %q are left; the file is there: %t", left, there)
		}
	})
}

package kubeadm_test

import (
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestControlGroupsOfPodsGo: those that systemd does not know, and no other.
func TestControlGroupsOfPodsGo(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	_, sims := steptest.StandingWith(t, c)
	s := sims["node1"]
	for _, dir := range []string{"cpuset/kubepods.slice/pod1", "hugetlb/kubepods", "cpuset/site.slice", "systemd"} {
		s.AddDir("/sys/fs/cgroup/"+dir, 0o755)
	}
	s.AddFile("/sys/fs/cgroup/cgroup.procs", "1\n", 0o644)
	var asked [][]string
	s.HandleProgram("find", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		asked = append(asked, c.Argv)
		return connector.Result{Exit: 1}, true // one of them went by itself
	})
	step := kubeadm.ResetMaster()
	if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	want := []string{"find", "/sys/fs/cgroup/cpuset/kubepods.slice", "/sys/fs/cgroup/hugetlb/kubepods", "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"}
	if len(asked) != 1 || !slices.Equal(asked[0], want) {
		t.Errorf("%q, want %q", asked, want)
	}
}

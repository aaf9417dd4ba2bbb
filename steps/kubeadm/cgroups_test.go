package kubeadm_test

import (
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestCgroupsOfPodsAreRemoved: those that systemd does not know, and no other.
func TestCgroupsOfPodsAreRemoved(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	_, sims := steptest.ExistingKubeWith(t, c)
	s := sims["node1"]
	for _, dir := range []string{"cpuset/kubepods.slice/pod1", "hugetlb/kubepods", "cpuset/site.slice", "systemd"} {
		s.AddDir("/sys/fs/cgroup/"+dir, 0o755)
	}
	const settings = "/run/systemd/system.control"
	for _, name := range []string{"kubepods.slice.d", "kubepods-burstable.slice.d", "site.slice.d"} {
		s.AddFile(settings+"/"+name+"/50-CPUShares.conf", "[Slice]\nCPUShares=2\n", 0o644)
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
	if left := s.Below(settings); !slices.Equal(left, []string{settings + "/site.slice.d", settings + "/site.slice.d/50-CPUShares.conf"}) {
		t.Errorf("of the settings %q are left", left)
	}
}

// TestCgroupsOfVersion2AreRemoved: there is one hierarchy, and the driver cgroupfs makes a
// group at its top that systemd does not know.
func TestCgroupsOfVersion2AreRemoved(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	_, sims := steptest.ExistingKubeWith(t, c)
	s := sims["node1"]
	for _, dir := range []string{"kubepods/burstable/pod1", "site.slice", "system.slice"} {
		s.AddDir("/sys/fs/cgroup/"+dir, 0o755)
	}
	var asked [][]string
	s.HandleProgram("find", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		asked = append(asked, c.Argv)
		return connector.Result{}, true
	})
	step := kubeadm.ResetMaster()
	if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	want := []string{"find", "/sys/fs/cgroup/kubepods", "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"}
	if len(asked) != 1 || !slices.Equal(asked[0], want) {
		t.Errorf("%q, want %q", asked, want)
	}
}

// TestEndedJobsAreRemoved: one whose connection broke before it was cleared is no more
// after a reset, like all else.
func TestEndedJobsAreRemoved(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	_, sims := steptest.ExistingKubeWith(t, c)
	s := sims["node1"]
	step := kubeadm.ResetMaster()
	h := steptest.Case{Cluster: c}.NewHost(t, s, step)
	for _, name := range []string{"kubeadm-init", "kubeadm-join"} {
		if err := h.StartJob(t.Context(), runner.Job{Name: name, Argv: []string{"kubeadm", "token", "list"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if left := s.Jobs(); len(left) != 0 {
		t.Errorf("%q are left", left)
	}
}

package node_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestKernelDefaultsOfKubelets, now and at each boot; and it comes back by a config
// that would have left it alone.
func TestKernelDefaultsOfKubelets(t *testing.T) {
	const boot = "/etc/sysctl.d/99-kubexm-cri.conf"
	tight := steptest.Cluster(t, steptest.Small)
	loose := steptest.Cluster(t, steptest.Small)
	loose.Spec.Kubernetes.Hardening.Relax = []string{manifest.RelaxKernelDefaults}
	before := func(s *conntest.Sim) {
		steptest.Nft(s)
		for _, st := range manifest.Settings() {
			if st.Of == manifest.OfKernel {
				s.SetSysctl(st.Name, "7")
			}
		}
	}
	for name, c := range map[string]*manifest.Cluster{"tight": tight, "loose": loose} {
		kase := steptest.Case{Cluster: c, Before: before}
		s := kase.Sim(t)
		set := node.Kernel(c)
		if err := set.Run(t.Context(), kase.NewHost(t, s, set)); err != nil {
			t.Fatal(err)
		}
		text := s.Read(boot)
		for _, st := range manifest.Settings() {
			if st.Of != manifest.OfKernel {
				continue
			}
			want := st.Value
			if name == "loose" {
				want = "7"
			}
			if got := s.Sysctl(st.Name); got != want {
				t.Errorf("%s: %s is %s", name, st.Name, got)
			}
			if written := strings.Contains(text, st.Name+" = "+st.Value+"\n"); written == (name == "loose") {
				t.Errorf("%s: %s is set at each boot: %t", name, st.Name, written)
			}
			s.SetSysctl(st.Name, st.Value) // by a kubelet
		}
		for _, other := range []*manifest.Cluster{loose, tight} {
			gone := node.ResetKernel(other)
			if err := gone.Run(t.Context(), kase.NewHost(t, s, gone)); err != nil {
				t.Fatal(err)
			}
			for _, st := range manifest.Settings() {
				if st.Of == manifest.OfKernel && s.Sysctl(st.Name) != "7" {
					t.Errorf("%s: %s is %s after a reset", name, st.Name, s.Sysctl(st.Name))
				}
			}
		}
	}
}

package installer_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// TestKubeVIP: kubeadm init reaches the API server at the virtual IP, then each master runs
// kube-vip with a kubeconfig of its own. A second run changes nothing, and a deletion leaves
// neither a file nor the address.
func TestKubeVIP(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "kube-vip")
		first := s.State(true)
		s.Must(pipeline.Create, "create")
		masters := []string{"m1", "m2", "m3"}
		for _, m := range masters {
			pod := s.Sims[m].Read(part.KubeVIPPod)
			if !strings.Contains(pod, "path: /etc/kubernetes/kube-vip.conf\n") || strings.Contains(pod, "super-admin.conf") {
				t.Errorf("%s: kube-vip.yaml:\n%s", m, pod)
			}
			if f, _ := s.Sims[m].File("/etc/kubernetes/kube-vip.conf"); f.Mode != 0o600 {
				t.Errorf("%s: kube-vip.conf has mode %v", m, f.Mode)
			}
		}
		if _, ok := s.Sims["w1"].File(part.KubeVIPPod); ok {
			t.Error("w1 runs kube-vip")
		}
		if on := s.Kube.VIPHosts(); !slices.Equal(on, masters[:1]) {
			t.Errorf("the virtual IP is on %q", on)
		}
		for _, m := range masters { // what listens there by now
			s.Sims[m].SetMachine(func(m *conntest.Machine) {
				m.Ports = append(m.Ports, `tcp LISTEN 0 128 127.0.0.1:2112 0.0.0.0:* users:(("kube-vip",pid=700,fd=3))`)
			})
		}
		s.Warnings = nil
		s.Must(pipeline.Create, "create again")
		if ran := s.ran(); len(ran) > 0 || len(s.Warnings) > 0 {
			t.Errorf("a second creation ran %q, and warned %q", ran, s.Warnings)
		}

		// Another master takes over.
		s.Kube.Silence("m1", true)
		if on := s.Kube.VIPHosts(); !slices.Equal(on, []string{"m2"}) {
			t.Errorf("without the API server of m1 the virtual IP is on %q", on)
		}
		s.Kube.Silence("m1", false)

		s.Must(pipeline.Delete, "delete")
		if on := s.Kube.VIPHosts(); len(on) > 0 {
			t.Errorf("the virtual IP is left on %q", on)
		}
		s.Same("a deletion restores the hosts", first, s.State(true))
	})
}

// TestKubeVIPIsDeletedEverywhere: without the manifests of kube-vip nobody reaches an API server
// at the virtual IP. The next creation restores them.
func TestKubeVIPIsDeletedEverywhere(t *testing.T) {
	t.Parallel()
	for name, alsoLost := range map[string][]string{"the manifest": nil, "the kubeconfig too": {"/etc/kubernetes/kube-vip.conf"}} {
		if testing.Short() && alsoLost != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, "kube-vip")
				s.Must(pipeline.Create, "create")
				masters := []string{"m1", "m2", "m3"}
				was := map[string]string{}
				for _, m := range masters {
					was[m] = s.Sims[m].Read(part.KubeVIPPod)
					for _, file := range append(alsoLost, part.KubeVIPPod) {
						s.Sims[m].RemoveAll(file)
					}
				}
				if on := s.Kube.VIPHosts(); len(on) > 0 {
					t.Fatalf("the virtual IP is on %q", on)
				}
				s.Must(pipeline.Create, "create again")
				if ran := s.ran(); !slices.Contains(ran, "kubeadm.init on m1") || !slices.Contains(ran, "loadbalancer.install-kube-vip on m3") {
					t.Errorf("it ran %q", ran)
				}
				for _, m := range masters {
					pod := s.Sims[m].Read(part.KubeVIPPod)
					if !strings.Contains(pod, "path: /etc/kubernetes/kube-vip.conf\n") || alsoLost == nil && pod != was[m] {
						t.Errorf("%s: kube-vip.yaml:\n%s", m, pod)
					}
				}
				if on := s.Kube.VIPHosts(); !slices.Equal(on, masters[:1]) {
					t.Errorf("the virtual IP is on %q", on)
				}
				s.Must(pipeline.Create, "create once more")
				if ran := s.ran(); len(ran) > 0 {
					t.Errorf("after that it ran %q", ran)
				}
			})
		})
	}
}

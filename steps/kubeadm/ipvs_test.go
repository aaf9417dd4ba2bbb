package kubeadm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestVirtualServersAreRemoved: where kube-proxy served in mode ipvs it takes back what it made,
// before its interface goes, and while containerd runs; where it did not, nobody calls it.
func TestVirtualServersAreRemoved(t *testing.T) {
	for name, ipvs := range map[string]bool{"mode ipvs": true, "another mode": false} {
		t.Run(name, func(t *testing.T) {
			c := steptest.Cluster(t, steptest.Small)
			_, sims := steptest.ExistingKubeWith(t, c)
			s := sims["node1"]
			if ipvs {
				s.AddDir("/sys/class/net/kube-ipvs0", 0o755)
			}
			var called []string
			s.AddDir("/etc/cni/net.d", 0o755)
			s.HandleProgram("ctr", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
				if _, watched := s.File("/etc/cni/net.d"); !watched { // containerd 2 ends when its folder goes
					return connector.Result{Exit: 1, Stderr: []byte("ctr: failed to list images: connection error: connect: connection refused\n")}, true
				}
				switch words := strings.Join(c.Argv, " "); {
				case slices.Contains(c.Argv, "run"):
					called = append(called, words)
				case slices.Contains(c.Argv, "delete"):
				default:
					return connector.Result{Stdout: []byte("registry.example/pause:3.10\nregistry.example/kube-proxy:v1.32.2\n")}, true
				}
				return connector.Result{}, true
			})
			s.HandleProgram("ip", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
				if slices.Equal(c.Argv, []string{"ip", "link", "delete", "kube-ipvs0"}) {
					called = append(called, strings.Join(c.Argv, " "))
				}
				return connector.Result{}, false
			})
			step := kubeadm.ResetMaster()
			if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			want := []string{"ip link delete kube-ipvs0"}
			if ipvs {
				want = append([]string{"ctr --namespace k8s.io run --rm --net-host --privileged --cgroup  --mount type=bind,src=/lib/modules,dst=/lib/modules,options=rbind:ro " +
					"registry.example/kube-proxy:v1.32.2 kubexm-kube-proxy-cleanup /usr/local/bin/kube-proxy --cleanup"}, want...)
			}
			if !slices.Equal(called, want) {
				t.Errorf("%q, want %q", called, want)
			}
		})
	}
}

// TestIPSetsAreRemoved: kube-proxy's own, and nobody else's, once no rule names them.
func TestIPSetsAreRemoved(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	_, sims := steptest.ExistingKubeWith(t, c)
	s := sims["node1"]
	var called []string
	for _, program := range []string{"ipset", "ip6tables-restore"} {
		s.HandleProgram(program, func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			called = append(called, strings.Join(c.Argv, " "))
			return connector.Result{Stdout: []byte("KUBE-6-CLUSTER-IP\nsites-own\n")}, true
		})
	}
	s.HandleProgram("ip6tables-save", func(connector.Cmd, []byte) (connector.Result, bool) {
		return connector.Result{Stdout: []byte("*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -m set --match-set KUBE-6-CLUSTER-IP dst,dst -j ACCEPT\nCOMMIT\n")}, true
	})
	step := kubeadm.ResetMaster()
	if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	called = slices.Compact(called) // a table is restored for itself
	if want := []string{"ip6tables-restore", "ipset list -name", "ipset destroy KUBE-6-CLUSTER-IP"}; !slices.Equal(called, want) {
		t.Errorf("%q, want %q", called, want)
	}
}

package kubeadm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestNetworkIsRemoved: a reset takes away interfaces, and of what a site may have itself, routes of
// BIRD and addresses of a tunnel, those of pods alone.
func TestNetworkIsRemoved(t *testing.T) {
	for network, want := range map[string][]string{
		"calico": {
			"ip link delete cni0", "ip link delete nodelocaldns", "ip link delete vxlan.calico", "ip link delete vxlan-v6.calico", "ip link delete kube-ipvs0",
			"ip -4 route flush table main proto 80", "ip -6 route flush table main proto 80",
			"ip -4 route flush table main root 10.233.64.0/18 proto bird", "ip -4 address flush dev tunl0 to 10.233.64.0/18",
		},
		"cilium": {
			"umount /run/cilium/cgroupv2",
			"ip link delete cni0", "ip link delete nodelocaldns", "ip link delete cilium_host", "ip link delete cilium_vxlan", "ip link delete cilium_wg0", "ip link delete kube-ipvs0",
			"ip -4 rule flush table 2004", "ip -4 route flush table 2004", "ip -4 rule flush table 2005", "ip -4 route flush table 2005",
			"ip -4 rule add from all lookup local priority 0 protocol kernel", "ip -4 rule delete from all lookup local priority 100",
			"ip -6 rule flush table 2004", "ip -6 route flush table 2004", "ip -6 rule flush table 2005", "ip -6 route flush table 2005",
			"ip -6 rule add from all lookup local priority 0 protocol kernel", "ip -6 rule delete from all lookup local priority 100",
			"find /sys/fs/bpf/tc/globals -maxdepth 1 -name cilium_* -delete",
			"ip -4 route delete unreachable 10.233.64.0/18 metric 4278198272 proto kernel",
		},
		"flannel": {
			"ip link delete cni0", "ip link delete nodelocaldns", "ip link delete flannel.1", "ip link delete flannel-v6.1",
			"ip link delete flannel-wg", "ip link delete flannel-wg-v6", "ip link delete kube-ipvs0",
		},
		"flannel}\n  dns: {nodelocaldns: {enabled: true}": {
			"ip link delete cni0", "ip link delete nodelocaldns", "ip link delete flannel.1", "ip link delete flannel-v6.1",
			"ip link delete flannel-wg", "ip link delete flannel-wg-v6", "ip link delete kube-ipvs0",
			"ip -4 route delete unreachable 10.233.64.0/18 metric 4278198272 proto kernel",
		},
	} {
		t.Run(network, func(t *testing.T) {
			c := steptest.Cluster(t, strings.Replace(steptest.Small, "plugin: flannel", "plugin: "+network, 1))
			_, sims := steptest.ExistingKubeWith(t, c)
			s := sims["node1"]
			var called []string
			for _, name := range []string{"ip", "umount", "find"} {
				s.HandleProgram(name, func(c connector.Cmd, _ []byte) (connector.Result, bool) {
					called = append(called, strings.Join(c.Argv, " "))
					return connector.Result{Exit: 1}, true // nothing is there
				})
			}
			s.AddFile("/etc/sysctl.d/99-zzz-override_cilium.conf", "", 0o644)
			step := kubeadm.ResetMaster()
			if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			if _, left := s.File("/etc/sysctl.d/99-zzz-override_cilium.conf"); left == (network == "cilium") {
				t.Errorf("cilium's file is left: %t", left)
			}
			if !slices.Equal(called, want) {
				t.Errorf("%q\nwant %q", called, want)
			}
		})
	}
}

// TestPodsAreUnreachable: the kubelet's unit adds the route where something asks pods at a boot.
func TestPodsAreUnreachable(t *testing.T) {
	const route = "ExecStartPre=-/sbin/ip -4 route replace unreachable 10.233.64.0/18 metric 4278198272 proto kernel\n"
	for network, want := range map[string]string{
		"flannel": "", "calico": "", "cilium": route, "flannel}\n  dns: {nodelocaldns: {enabled: true}": route,
	} {
		c := steptest.Cluster(t, strings.Replace(steptest.Small, "plugin: flannel", "plugin: "+network, 1))
		s := steptest.Case{Cluster: c}.Sim(t)
		step := kubeadm.Install()
		if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
		unit := s.Read("/etc/systemd/system/kubelet.service")
		if !strings.Contains(unit, "[Service]\n"+want+"ExecStart=/usr/local/bin/kubelet ") {
			t.Errorf("%q: %s", network, unit)
		}
	}
}

// TestPodsAreRemovedWithoutAnAgent: cilium's program waits for an agent that kubeadm has ended; the
// programs of other networks clean up.
func TestPodsAreRemovedWithoutAnAgent(t *testing.T) {
	for network, want := range map[string]bool{"cilium": true, "calico": false, "flannel": false} {
		c := steptest.Cluster(t, strings.Replace(steptest.Small, "plugin: flannel", "plugin: "+network, 1))
		_, sims := steptest.ExistingKubeWith(t, c)
		s := sims["node1"]
		var there []bool
		s.Handle(func(c connector.Cmd) bool {
			return slices.Equal(c.Argv[:min(2, len(c.Argv))], []string{"kubeadm", "reset"})
		},
			func(connector.Cmd, []byte) (connector.Result, bool) {
				_, ok := s.File("/etc/cni/net.d/00-kubexm-reset.conflist")
				there = append(there, ok)
				return connector.Result{}, false
			})
		step := kubeadm.ResetMaster()
		if err := step.Run(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(there, []bool{want}) {
			t.Errorf("%s: kubeadm reset finds the configuration without a plugin: %t, want %t", network, there, want)
		}
	}
}

package node_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func TestKernelAndNamesKeepTheirLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	for name, before := range map[string]func(*conntest.Sim){
		"bare": steptest.Nft,
		"tuned before": func(s *conntest.Sim) {
			steptest.Nft(s)
			s.SetModule("br_netfilter", "loaded")
			s.SetSysctl("net.bridge.bridge-nf-call-iptables", "0")
			s.AddFile("/etc/sysctl.d/99-kubexm-cri.conf", "net.ipv4.ip_forward = 0\n", 0o600)
			s.AddFile("/etc/hosts", "127.0.0.1 localhost", 0o664)
			s.SetSysctl("fs.inotify.max_user_watches", "1048576")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := steptest.Case{Cluster: c, Before: before}
			steptest.Ensure(t, c, node.Kernel(c.Cluster), node.ResetKernel(c.Cluster))
			t.Run("names", func(t *testing.T) {
				steptest.Ensure(t, c, node.Names(c.Cluster), node.RemoveNames(c.Cluster))
			})
		})
	}
}

// TestAHostFindsItselfUnderItsAddress, also where a distribution has its name on a
// loopback address: the C library reads all lines, and puts the nearest first.
func TestAHostFindsItselfUnderItsAddress(t *testing.T) {
	const own = "127.0.0.1 localhost\n127.0.1.1 node1.old node1\n::1 localhost node1 ip6-localhost # the other\n127.0.0.5 db\n"
	block := func(at string) string {
		return "# BEGIN KubeXM Managed Block\n" + at + "# END KubeXM Managed Block\n"
	}
	for _, before := range []string{own, own + block("192.0.2.99 node1\n")} {
		c := steptest.Case{Before: func(s *conntest.Sim) { s.AddFile("/etc/hosts", before, 0o644) }}
		s := c.Sim(t)
		step := node.Names(steptest.Cluster(t, steptest.Small))
		if err := step.Run(t.Context(), c.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
		text := s.Read("/etc/hosts")
		for line := range strings.Lines(text) {
			if f := strings.Fields(line); len(f) > 1 && slices.Contains(f[1:], "node1") && f[0] != "#" && f[0] != "192.0.2.11" {
				t.Errorf("node1 is %s in\n%s", f[0], text)
			}
		}
		const rest = "127.0.0.1 localhost\n# kubexm: 127.0.1.1 node1.old node1\n::1 localhost ip6-localhost # the other\n127.0.0.5 db\n"
		if !strings.HasSuffix(text, rest) || strings.Count(text, "BEGIN KubeXM") != 1 {
			t.Errorf("the host's own lines are others:\n%s", text)
		}
	}
}

// TestKernelStaysAfterBoot boots the host between the installation and the removal.
func TestKernelStaysAfterBoot(t *testing.T) {
	c := steptest.Case{Cluster: steptest.Cluster(t, steptest.Small), Before: steptest.Nft}
	s := c.Sim(t)
	first := s.Snapshot()
	install, remove := node.Kernel(c.Cluster), node.ResetKernel(c.Cluster)
	if err := install.Run(t.Context(), c.NewHost(t, s, install)); err != nil {
		t.Fatal(err)
	}
	s.Reboot()
	for key, want := range map[string]string{"fs.inotify.max_user_instances": "512", "net.bridge.bridge-nf-call-iptables": "1", "net.ipv4.ip_forward": "1"} {
		if got := s.Sysctl(key); got != want {
			t.Errorf("after a boot %s is %q", key, got)
		}
	}
	if v, err := install.Precheck(t.Context(), c.NewHost(t, s, install)); err != nil || v != steps.Done {
		t.Errorf("after a boot there is something to do: %v %v", v, err)
	}
	if err := remove.Run(t.Context(), c.NewHost(t, s, remove)); err != nil {
		t.Fatal(err)
	}
	if d := conntest.Diff(first, s.Snapshot()); d != "" {
		t.Errorf("removed after a boot:\n%s", d)
	}
}

// TestAMasterUsesItsOwnAPIServer once it is whole, and at the first master again when
// somebody has reset it. What was there before kubexm comes back all the same.
func TestAMasterUsesItsOwnAPIServer(t *testing.T) {
	c := steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11}\n    - {name: node2, address: 192.0.2.12}", "master: [node1]", "master: [node1, node2]").Replace(steptest.Small))
	kase := steptest.Case{Cluster: c, Host: c.Spec.Hosts[1]}
	s := kase.Sim(t)
	first := s.Snapshot()
	run := func(step steps.Step, want string) {
		t.Helper()
		if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		} else if v == steps.Todo {
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(s.Read("/etc/hosts")+"\n", want) {
			t.Errorf("after %s there is no %q in\n%s", step.Meta().Name, want, s.Read("/etc/hosts"))
		}
	}
	run(node.Names(c), "\n192.0.2.11 lb.kubexm.local\n")
	run(node.AimAtItself(c), "\n192.0.2.11 lb.kubexm.local\n") // it has not joined
	s.AddFile("/etc/kubernetes/kubexm-complete", "x", 0o600)
	s.AddFile("/etc/kubernetes/admin.conf", "x", 0o600)
	run(node.AimAtItself(c), "\n192.0.2.12 lb.kubexm.local\n")
	run(node.Names(c), "\n192.0.2.12 lb.kubexm.local\n")
	s.RemoveAll("/etc/kubernetes/admin.conf") // kubeadm reset, by hand
	run(node.Names(c), "\n192.0.2.11 lb.kubexm.local\n")
	s.RemoveAll("/etc/kubernetes")
	run(node.RemoveNames(c), "")
	if d := conntest.Diff(first, s.Snapshot()); d != "" {
		t.Errorf("removed:\n%s", d)
	}
}

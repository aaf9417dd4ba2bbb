package cluster_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestRenewProxy: a pod of kube-proxy that knows the name as the host does is left
// alone, one that knows it otherwise is replaced.
func TestRenewProxy(t *testing.T) {
	c := with(t, "")
	const copied = "/var/lib/kubelet/pods/00000000-0000-4000-8000-0000000000aa/etc-hosts"
	const old, now = "192.0.2.99 lb.kubexm.local\n", "192.0.2.11 lb.kubexm.local # own\n"
	for name, x := range map[string]struct {
		pod   string // none where it is empty
		stale bool
	}{
		"the same":                 {"# Kubernetes-managed\n127.0.0.1 localhost\n192.0.2.11 node1 lb.kubexm.local\n", false},
		"as it was":                {"127.0.0.1 localhost\n" + old, true},
		"without it":               {"127.0.0.1 localhost\n#" + now, true},
		"another that is like it":  {"192.0.2.11 lb.kubexm.local.example\n", true},
		"a pod that has not begun": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			kase := standing(c)
			s := kase.Sim(t)
			s.AddFile("/etc/hosts", "127.0.0.1 localhost\n"+now, 0o644)
			s.RemoveAll(copied)
			if x.pod != "" {
				s.AddFile(copied, x.pod, 0o644)
			}
			step := cluster.RenewProxy(c)
			if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || (v == steps.Todo) != x.stale {
				t.Fatalf("%v, %v", v, err)
			}
			before := s.Snapshot()
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			deleted := slices.ContainsFunc(s.Calls(), func(c conntest.Call) bool {
				return c.Verb == connector.VerbExec && slices.Contains(c.Argv, "delete") && slices.Contains(c.Argv, "kube-proxy-node1")
			})
			if deleted != x.stale {
				t.Errorf("the pod was deleted: %t", deleted)
			}
			if d := conntest.Diff(before, s.Snapshot()); !x.stale && strings.Contains(d, "etc-hosts") {
				t.Errorf("changed:\n%s", d)
			}
			if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || v != steps.Done {
				t.Errorf("after it: %v, %v", v, err)
			}
		})
	}
	// While no API server answers there is something to do yet.
	s, step := conntest.New(t), cluster.RenewProxy(c)
	s.HandleProgram("kubectl", func(connector.Cmd, []byte) (connector.Result, bool) { return connector.Result{Exit: 1}, true })
	if v, err := step.Precheck(t.Context(), steptest.Case{Cluster: c}.NewHost(t, s, step)); err != nil || v != steps.Todo {
		t.Errorf("%v, %v", v, err)
	}
}

// TestRenewWorkerProxy: on a worker, the container of kube-proxy is stopped if it has another
// address of the endpoint than the host, and the step ends when the kubelet has started it.
func TestRenewWorkerProxy(t *testing.T) {
	c := with(t, "")
	const copied = "/var/lib/kubelet/pods/00000000-0000-4000-8000-0000000000aa/etc-hosts"
	const now = "127.0.0.1 lb.kubexm.local\n"
	for name, x := range map[string]struct {
		pod   string
		stale bool
	}{
		"the same":                {"# Kubernetes-managed\n" + now, false},
		"another":                 {"192.0.2.11 lb.kubexm.local\n", true},
		"a pod that never began":  {"", false},
		"one that has both of it": {"192.0.2.11 lb.kubexm.local\n" + now, true},
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) {
				steptest.JoinedWorker(c, s, "w1")
				s.AddFile("/etc/hosts", now, 0o644)
				s.RemoveAll(copied)
				if x.pod != "" {
					s.AddFile(copied, x.pod, 0o644)
				}
			}}
			if x.stale {
				steptest.Do(t, kase, cluster.RenewWorkerProxy(c), false)
			}
			s, step := kase.Sim(t), cluster.RenewWorkerProxy(c)
			if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || (v == steps.Todo) != x.stale {
				t.Fatalf("%v, %v", v, err)
			}
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			if got := s.Read(copied); x.stale && got != "# Kubernetes-managed hosts file (host network).\n"+now || !x.stale && got != x.pod {
				t.Errorf("kube-proxy has\n%s", got)
			}
		})
	}
}

package kubeadm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// masters is a master that stands and one that is to join it.
type masters struct {
	t             *testing.T
	cluster       *manifest.Cluster
	kube          *steptest.Kube
	first, second *conntest.Sim
	before        conntest.Snapshot // the second
	board         *steps.Board
}

func newMasters(t *testing.T, etcd string) *masters {
	t.Helper()
	c := steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11}\n    - {name: node2, address: 192.0.2.12}", "master: [node1]", "master: [node1, node2]", "{type: kubeadm}", etcd).Replace(steptest.Small))
	kube, sims := steptest.ExistingKubeWith(t, c)
	m := &masters{t: t, cluster: c, kube: kube, first: sims["node1"], second: sims["node2"]}
	m.before = m.second.Snapshot()
	m.again()
	return m
}

// again begins a new run.
func (m *masters) again() { m.board = &steps.Board{} }

func (m *masters) host(step steps.Step, first bool) *steps.Host {
	m.t.Helper()
	s, h := m.second, m.cluster.Spec.Hosts[1]
	if first {
		s, h = m.first, m.cluster.Spec.Hosts[0]
	}
	return steptest.Case{Cluster: m.cluster, Host: h}.NewHost(m.t, s, step).WithBoard(m.board).ForStep(step.Meta())
}

// step carries one out as the engine does.
func (m *masters) step(step steps.Step, first bool) error {
	m.t.Helper()
	h := m.host(step, first)
	v, err := step.Precheck(m.t.Context(), h)
	if err != nil || v == steps.Done && h.Wrote() {
		return err
	}
	if err := step.Run(m.t.Context(), h); err != nil {
		return err
	}
	if v, err = step.Precheck(m.t.Context(), h); err == nil && v != steps.Done && !step.Meta().Always {
		err = fmt.Errorf("%s ran, and is still to be done", step.Meta().Name)
	}
	return err
}

// lead is what comes before the join.
func (m *masters) lead() error {
	m.t.Helper()
	second := m.cluster.Spec.Hosts[1]
	if err := m.step(kubeadm.PrepareMaster(), false); err != nil {
		return err
	}
	if m.cluster.Spec.Etcd.Type == "kubeadm" {
		if err := m.step(kubeadm.ClearMember(m.cluster, second), true); err != nil {
			return err
		}
	}
	return m.step(kubeadm.MintMasterToken(m.cluster, second), true)
}

func (m *masters) join() error {
	m.t.Helper()
	if err := m.lead(); err != nil {
		return err
	}
	return m.step(kubeadm.JoinMaster(m.cluster), false)
}

func (m *masters) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func TestMasterJoins(t *testing.T) {
	for _, etcd := range []string{"{type: kubeadm}", "{type: kubexm}"} {
		synctest.Test(t, func(t *testing.T) {
			m := newMasters(t, etcd)
			m.first.AddFile(manifest.EncryptionConfig, "the cluster's own", 0o600)
			m.must(m.step(kubeadm.PrepareMaster(), false))
			if d := conntest.Diff(m.before, m.second.Snapshot()); d != "" {
				t.Errorf("an untouched host was prepared:\n%s", d)
			}
			if etcd == "{type: kubexm}" {
				for _, name := range []string{"ca.crt", "client.crt", "client.key"} {
					m.second.AddFile("/etc/kubernetes/etcd/"+name, "x", 0o600)
				}
			}
			m.must(m.join())
			shared := []string{manifest.EncryptionName, "ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key"}
			if etcd == "{type: kubeadm}" {
				shared = append(shared, "etcd/ca.crt", "etcd/ca.key")
			}
			for _, name := range shared {
				f, _ := m.second.File("/etc/kubernetes/pki/" + name)
				if string(f.Data) != m.first.Read("/etc/kubernetes/pki/"+name) || !strings.HasSuffix(name, ".crt") && !strings.HasSuffix(name, ".pub") && f.Mode != 0o600 {
					t.Errorf("%s: %q, %v", name, f.Data, f.Mode)
				}
			}
			for _, s := range []*conntest.Sim{m.first, m.second} {
				for _, c := range s.Calls() {
					if strings.Contains(c.String(), "abcdef.") || strings.Contains(c.String(), "the cluster's") {
						t.Errorf("a secret is in %s", c)
					}
				}
			}
			end := m.second.Snapshot()
			m.again()
			m.first.ForgetCalls()
			m.must(m.join())
			if d := conntest.Diff(end, m.second.Snapshot()); d != "" {
				t.Errorf("joined again:\n%s", d)
			}
			for _, c := range m.first.Calls() {
				if c.Verb == connector.VerbExec {
					t.Errorf("nobody joins, and the first master is asked for %s", c)
				}
			}
		})
	}
}

// TestMasterJoinAfterABreak breaks the wire at every command of the join: the next
// run has a master in the end, or undoing leaves the host as it was.
func TestMasterJoinAfterABreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []bool{false, true} {
			for at := 1; masterBroken(t, conntest.Fault{At: at, After: after}); at++ {
			}
		}
	})
}

func masterBroken(t *testing.T, f conntest.Fault) (broke bool) {
	t.Helper()
	for _, undo := range []bool{false, true} {
		m := newMasters(t, "{type: kubeadm}")
		m.must(m.lead())
		step := kubeadm.JoinMaster(m.cluster)
		h := m.host(step, false)
		m.second.ForgetCalls()
		m.second.Break(f)
		err := step.Run(t.Context(), h)
		m.second.Mend()
		if !slices.ContainsFunc(m.second.Calls(), func(c conntest.Call) bool { return c.Err != nil }) {
			return false
		}
		_, whole := m.second.File("/etc/kubernetes/kubexm-complete")
		if undo && err != nil {
			if err := step.Rollback(t.Context(), h); err != nil {
				t.Fatalf("%+v: rollback: %v", f, err)
			}
			if n := ran(m.second, "reset"); whole && n > 0 {
				t.Errorf("%+v: a master that was whole was reset", f)
			}
			// One that kubeadm ended well with is known for whole now.
			if _, whole = m.second.File("/etc/kubernetes/kubexm-complete"); whole && ran(m.second, "reset") > 0 {
				t.Errorf("%+v: reset, and called whole", f)
			}
			if _, ok := m.second.File("/etc/kubernetes/pki/ca.key"); ok != whole {
				t.Errorf("%+v: whole: %t, and its keys are there: %t", f, whole, ok)
			}
		}
		m.again()
		if err := m.join(); err != nil {
			t.Fatalf("%+v undo=%t: %v", f, undo, err)
		}
		if _, ok := m.second.File("/etc/kubernetes/kubexm-complete"); !ok {
			t.Errorf("%+v undo=%t: no master", f, undo)
		}
	}
	return true
}

// TestADeadMemberIsRemoved is removed before its place is taken: the store would wait
// for it, and refuses two in one place.
func TestADeadMemberIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, "{type: kubeadm}")
		m.must(m.join())
		for _, dir := range []string{"/etc/kubernetes", "/var/lib/kubelet", "/var/lib/etcd"} {
			m.second.RemoveAll(dir)
		}
		m.second.StopUnit("kubelet.service")
		if m.kube.Object("v1", "EtcdMember", "", "node2") == nil {
			t.Fatal("the store has forgotten its member by itself")
		}
		m.again()
		m.must(m.step(kubeadm.PrepareMaster(), false))
		m.must(m.step(kubeadm.ClearMember(m.cluster, m.cluster.Spec.Hosts[1]), true))
		if m.kube.Object("v1", "EtcdMember", "", "node2") != nil {
			t.Error("the dead member is left")
		}
		if m.kube.Object("v1", "EtcdMember", "", "node1") == nil {
			t.Error("another was removed")
		}
		m.must(m.join())
	})
}

// TestNoMemberRuns: without a container of etcd there is nobody to ask, and the
// error says where to look.
func TestNoMemberRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, "{type: kubeadm}")
		m.first.RemoveAll("/etc/kubernetes/manifests") // the control plane's containers are gone
		m.must(m.step(kubeadm.PrepareMaster(), false))
		err := m.step(kubeadm.ClearMember(m.cluster, m.cluster.Spec.Hosts[1]), true)
		if err == nil || !strings.Contains(err.Error(), "no container of etcd runs") {
			t.Fatal(err)
		}
		if advice := strings.Join(steps.Advice(err), "; "); !strings.Contains(advice, "crictl ps -a --name etcd") || !strings.Contains(advice, "on node1") {
			t.Errorf("advice: %q", advice)
		}
	})
}

// TestALivingMemberIsPreserved: whoever has joined keeps it.
func TestALivingMemberIsPreserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, "{type: kubeadm}")
		m.must(m.join())
		m.again()
		m.second.StopUnit("kubelet.service") // its kubelet is away, its member is not
		m.must(m.join())
		if m.kube.Object("v1", "EtcdMember", "", "node2") == nil {
			t.Error("it was removed")
		}
		if n := ran(m.second, "reset"); n != 0 || !m.second.Unit("kubelet.service").Active {
			t.Errorf("%d resets; the kubelet runs: %t", n, m.second.Unit("kubelet.service").Active)
		}
	})
}

// TestAnOutdatedMark: of a master that somebody has reset by hand. A join that fails
// is taken back all the same.
func TestAnOutdatedMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, "{type: kubeadm}")
		m.second.AddFile("/etc/kubernetes/kubexm-complete", "x", 0o600)
		m.must(m.lead())
		m.first.RemoveAll("/etc/kubernetes/manifests") // its API server is away by now
		if err := m.step(kubeadm.JoinMaster(m.cluster), false); err == nil {
			t.Fatal("it joined nobody")
		}
		step := kubeadm.JoinMaster(m.cluster)
		m.must(step.Rollback(t.Context(), m.host(step, false)))
		if _, ok := m.second.File("/etc/kubernetes/pki/ca.key"); ok || ran(m.second, "reset") != 1 {
			t.Errorf("it was not taken back: %d resets", ran(m.second, "reset"))
		}
	})
}

// TestACompleteMasterIsNeverReset, whether its API server answers or not.
func TestACompleteMasterIsNeverReset(t *testing.T) { synctest.Test(t, neverReset) }

func neverReset(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	s, away := conntest.New(t), false
	programs(s)
	s.AddUnit("kubelet.service", "[Service]\nExecStart=/usr/local/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n", true, true)
	s.HandleProgram("kubectl", func(connector.Cmd, []byte) (connector.Result, bool) {
		if _, ok := s.File("/etc/kubernetes/admin.conf"); !ok || away {
			return connector.Result{Exit: 1, Stderr: []byte("connection refused\n")}, true
		}
		return connector.Result{Stdout: []byte("daemonset.apps/kube-proxy\nconfigmap/kubeadm-config\n")}, true
	})
	kase := steptest.Case{Cluster: c}
	step := kubeadm.Init(c)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	made := s.Snapshot()
	away = true
	h := kase.NewHost(t, s, step)
	if v, err := step.Precheck(t.Context(), h); err != nil || v != steps.Todo {
		t.Fatalf("%v, %v", v, err)
	}
	err := step.Run(t.Context(), h)
	if err == nil || !strings.Contains(strings.Join(steps.Advice(err), " "), "nothing was changed on") {
		t.Errorf("%v, %q", err, steps.Advice(err))
	}
	if err := step.Rollback(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if d := conntest.Diff(made, s.Snapshot()); d != "" || ran(s, "reset") != 0 {
		t.Errorf("%d resets:\n%s", ran(s, "reset"), d)
	}
	// It comes back by itself, once its kubelet is started.
	away = false
	s.StopUnit("kubelet.service")
	s.RemoveAll("/etc/kubernetes/kubexm-complete") // and this one was made before there were such marks
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	if d := conntest.Diff(made, s.Snapshot()); d != "" || ran(s, "reset") != 0 {
		t.Errorf("%d resets:\n%s", ran(s, "reset"), d)
	}
}

// TestResetLeavesAnothersStore: kubeadm's reset empties etcd's folder on any host,
// unless it is told not to. Only where it runs a member it may.
func TestResetLeavesAnothersStore(t *testing.T) {
	for _, x := range []struct {
		etcd, host string
		reset      func() steps.Step
		emptied    bool
	}{
		{"{type: kubeadm}", "node1", kubeadm.ResetMaster, true},
		{"{type: kubexm}", "node1", kubeadm.ResetMaster, false},
		{"{type: external, external: {endpoints: ['http://192.0.2.41:2379']}}", "node1", kubeadm.ResetMaster, false},
		{"{type: kubeadm}", "node2", kubeadm.ResetWorker, false},
		{"{type: kubexm}", "node2", kubeadm.ResetWorker, false},
	} {
		c := steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11}\n    - {name: node2, address: 192.0.2.12}", "worker: [node1]", "worker: [node2]", "{type: kubeadm}", x.etcd).Replace(steptest.Small))
		_, sims := steptest.ExistingKubeWith(t, c)
		s := sims[x.host]
		s.AddFile("/etc/kubernetes/kubelet.conf", "x", 0o600)
		s.AddFile("/var/lib/etcd/member/wal/0.wal", "data", 0o600)
		step := x.reset()
		kase := steptest.Case{Cluster: c, Host: c.Spec.Hosts[slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return h.Name == x.host })]}
		if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.File("/var/lib/etcd/member/wal/0.wal"); ok == x.emptied {
			t.Errorf("etcd %s, %s: the data is there: %t", x.etcd, x.host, ok)
		}
	}
}

// TestAFailedJoinLeavesTheMember: taking back a master that runs a member of a store
// which is not kubeadm's leaves that and its record alone.
func TestAFailedJoinLeavesTheMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMasters(t, "{type: kubexm}")
		m.second.AddFile("/var/lib/etcd/member/wal/0.wal", "data", 0o600)
		m.second.AddFile("/var/lib/kubexm/demo/before/x.json", "{}", 0o600)
		m.second.AddFile("/etc/kubernetes/kubelet.conf", "x", 0o600)
		before := m.second.Below("/var/lib")
		step := kubeadm.JoinMaster(m.cluster)
		m.must(step.Rollback(t.Context(), m.host(step, false)))
		if ran(m.second, "reset") != 1 {
			t.Error("it was not taken back")
		}
		if after := m.second.Below("/var/lib"); !slices.Equal(before, after) {
			t.Errorf("was %q, is %q", before, after)
		}
	})
}

package cluster_test

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func applied() steps.Applied {
	return steps.Applied{Config: []byte("kind: Cluster\n"), Lock: []byte("kind: Lock\n"), ConfigDigest: "sha256:c", LockDigest: "sha256:l", Serial: "7", Highest: "7", Root: "sha256:r", Set: "v1.34.10", Operation: "op-1", Bundles: []byte("[]\n"),
		Components: map[string]string{"kubelet": "v1.34.10", "containerd": "2.1.4", "registry": "3.0.0", "coredns": "v1.12", "ingress-nginx": "4"},
		Digests:    map[string]string{"kubelet linux/amd64": "sha256:k"}}
}

// with adds blocks to the small config.
func with(t *testing.T, more string) *manifest.Cluster {
	return steptest.Cluster(t, steptest.Small+more)
}

// standing is a host whose cluster stands.
func standing(c *manifest.Cluster) steptest.Case {
	return steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c), Applied: applied()}
}

// recordedIn is a cluster that remembers what the case applies.
func recordedIn(t *testing.T, kase steptest.Case) steptest.Case {
	before := kase.Before
	kase.Before = func(s *conntest.Sim) {
		before(s)
		record := cluster.Record()
		if err := record.Run(t.Context(), kase.NewHost(t, s, record)); err != nil {
			t.Fatal(err)
		}
		s.RemoveAll("/var/lib/kubexm") // what is on record of the objects is not the matter here
	}
	return kase
}

// TestRecordsOnHostsKeepTheirLaws: the copy of the cluster's record on a master, and the
// release of a host, where there is none before and where there is one of an earlier run.
func TestRecordsOnHostsKeepTheirLaws(t *testing.T) {
	kase := recordedIn(t, standing(with(t, "")))
	steptest.Ensure(t, kase, cluster.WriteCopy(), cluster.RemoveCopy())
	steptest.Ensure(t, kase, cluster.WriteRelease(), cluster.RemoveRelease())
	for name, step := range map[string]steps.Step{"copy": cluster.WriteCopy(), "release": cluster.WriteRelease()} {
		t.Run(name+" of an earlier run", func(t *testing.T) {
			later := kase
			earlier := kase.Before
			later.Before = func(s *conntest.Sim) {
				earlier(s)
				old := kase
				old.Applied.Set, old.Applied.Config = "v1.33.0", []byte("kind: Old\n")
				record := cluster.Record()
				do(t, old, s, record, step)
				do(t, kase, s, record)
			}
			steptest.Do(t, later, step, true)
		})
	}
}

func TestStepsOfAClusterKeepTheirLaws(t *testing.T) {
	small := with(t, "")
	two := steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11}\n    - {name: node2, address: 192.0.2.12}", "worker: [node1]", "worker: [node1, node2]").Replace(steptest.Small))
	labelled := steptest.Cluster(t, strings.Replace(steptest.Small, "address: 192.0.2.11}", "address: 192.0.2.11, labels: {zone: a}, taints: [{key: only, value: db, effect: NoSchedule}]}", 1))
	for name, c := range map[string]struct {
		kase   steptest.Case
		step   steps.Step
		undoes bool
	}{
		"fetch-kubeconfig": {standing(small), cluster.FetchKubeconfig(small), true},
		"record-applied":   {standing(small), cluster.Record(), true},
		"keep-applied":     {recordedIn(t, standing(small)), cluster.WriteApplied(), true},
		"sign-kubelets":    {standing(small), cluster.SignKubelets(small, small.Spec.Hosts), false},
		"delete-node":      {standing(two), cluster.DeleteNode(two.Spec.Hosts[1]), false},
		"delete-pods":      {standing(two), cluster.DeletePods(two.Spec.Hosts[1]), false},
		"label-nodes":      {standing(labelled), cluster.LabelNodes(labelled, labelled.Spec.Hosts), false},
	} {
		t.Run(name, func(t *testing.T) { steptest.Do(t, c.kase, c.step, c.undoes) })
	}
}

// TestInstallKubeconfigKeepsItsLaws: the file of another cluster comes back.
func TestInstallKubeconfigKeepsItsLaws(t *testing.T) {
	c := with(t, "")
	for name, before := range map[string]func(*conntest.Sim){
		"no folder":       func(*conntest.Sim) {},
		"another cluster": func(s *conntest.Sim) { s.AddFile("/root/.kube/config", "theirs\n", 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) { steptest.ExistingCluster(c)(s); before(s) }}
			steptest.Ensure(t, kase, cluster.InstallKubeconfig(), cluster.RemoveKubeconfig())
		})
	}
	// A user's files are the user's to write: root would follow links in the user's folders.
	ops := steptest.Cluster(t, strings.Replace(steptest.Small, "user: root", "user: ops", 1))
	standing := func(s *conntest.Sim) {
		steptest.ExistingCluster(ops)(s)
		if _, err := runner.New(s, runner.Options{}).EnsureUser(t.Context(), runner.NewUser{Name: "ops", Home: "/home/ops"}); err != nil {
			t.Fatal(err)
		}
	}
	for name, before := range map[string]func(*conntest.Sim){
		"no folder":       func(*conntest.Sim) {},
		"another cluster": func(s *conntest.Sim) { s.AddFile("/home/ops/.kube/config", "theirs\n", 0o640) },
		"a link": func(s *conntest.Sim) {
			s.AddDir("/home/ops/.kube", 0o755)
			s.AddLink("/home/ops/.kube/config", "/etc/shadow")
		},
	} {
		t.Run("of a user, "+name, func(t *testing.T) {
			kase := steptest.Case{Cluster: ops, Before: func(s *conntest.Sim) {
				standing(s)
				s.AddFile("/etc/shadow", "root's\n", 0o600)
				before(s)
			}}
			steptest.Ensure(t, kase, cluster.InstallKubeconfig(), cluster.RemoveKubeconfig())
			s := kase.Sim(t)
			s.ForgetCalls()
			for _, step := range []steps.Step{cluster.InstallKubeconfig(), cluster.RemoveKubeconfig()} {
				if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range s.Calls() {
				theirs := strings.Contains(c.String(), "/home/ops")
				if theirs && c.Sudo || !theirs && !c.Sudo {
					t.Errorf("sudo %t: %s", c.Sudo, c)
				}
			}
			if s.Read("/etc/shadow") != "root's\n" {
				t.Error("what a link led to was changed")
			}
		})
	}
	t.Run("of a user, with files of root in its folder", func(t *testing.T) {
		kase := steptest.Case{Cluster: ops, Before: standing}
		s := kase.Sim(t)
		if err := cluster.InstallKubeconfig().Run(t.Context(), kase.NewHost(t, s, cluster.InstallKubeconfig())); err != nil {
			t.Fatal(err)
		}
		s.AddFile("/home/ops/.kube/cache/root's", "", 0o660) // of a kubectl that root ran
		s.Handle(func(c connector.Cmd) bool { return c.Verb == connector.VerbPurge && !c.Sudo }, func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Exit: 1, Stderr: []byte("rm: cannot remove: Permission denied\n")}, true
		})
		if err := cluster.RemoveKubeconfig().Run(t.Context(), kase.NewHost(t, s, cluster.RemoveKubeconfig())); err != nil {
			t.Fatal(err)
		}
		for _, line := range s.Snapshot() {
			if strings.Contains(line, ".kube") {
				t.Errorf("left: %s", line)
			}
		}
	})
	// A dry run on a host without a control plane says what it would do.
	s := conntest.New(t)
	step := cluster.InstallKubeconfig()
	d, ok := step.(steps.Differ)
	if !ok {
		t.Fatal("it gives no difference")
	}
	if changes, err := d.Diff(t.Context(), steptest.Case{}.NewHost(t, s, step)); err != nil || len(changes) != 2 {
		t.Errorf("%q, %v", changes, err)
	}
	if err := step.Run(t.Context(), steptest.Case{}.NewHost(t, s, step)); err == nil || !strings.Contains(err.Error(), "admin.conf") {
		t.Errorf("a run without a control plane: %v", err)
	}
}

// TestFilesInTheWorkdir: which documents, for their owner alone, and gone with the cluster.
func TestFilesInTheWorkdir(t *testing.T) {
	c := with(t, "")
	kase := standing(c)
	kase.Workdir = t.TempDir()
	s := kase.Sim(t)
	for _, step := range []steps.Step{cluster.FetchKubeconfig(c), cluster.Record(), cluster.WriteApplied()} {
		if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{
		"kubeconfig": "https://192.0.2.11:6443", "applied/config.yaml": "kind: Cluster\n", "applied/kubexm.lock": "kind: Lock\n", "applied/bundles.json": "[]\n",
		"applied/applied.json": `"lead": "node1",`,
	} {
		path := filepath.Join(kase.Workdir, file)
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %q, %v", file, text, err)
		}
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, st, err)
		}
	}
	steptest.Do(t, kase, cluster.RemoveWorkdirState(), false)
	left, err := filepath.Glob(filepath.Join(kase.Workdir, "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestForeignKubeconfigIsRefused: what a master was made to hold does not reach the
// workdir, and the kubeconfig that is there stays.
func TestForeignKubeconfigIsRefused(t *testing.T) {
	c := with(t, "")
	kase := standing(c)
	kase.Workdir = t.TempDir()
	s := kase.Sim(t)
	step := cluster.FetchKubeconfig(c)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	file := cluster.KubeconfigPath(kase.Workdir)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const conf, authority = "/etc/kubernetes/admin.conf", "/etc/kubernetes/pki/ca.crt"
	good, ca := s.Read(conf), s.Read(authority)
	pair, err := pki.NewAuthority("kubernetes", time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	other := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate.Raw}))
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, h := range map[string]struct{ conf, ca, says string }{
		"a program":                {strings.Replace(good, "user: {client-", "user: {exec: {command: sh}, client-", 1), ca, "users[0].user.exec"},
		"another CA":               {strings.Replace(good, encoded(ca), encoded(other), 1), ca, authority},
		"another CA of the master": {strings.Replace(good, encoded(ca), encoded(other), 1), other, file},
	} {
		s.AddFile(conf, h.conf, 0o600)
		s.AddFile(authority, h.ca, 0o644)
		step := cluster.FetchKubeconfig(c)
		err := step.Run(t.Context(), kase.NewHost(t, s, step))
		if err == nil || !strings.Contains(err.Error(), h.says) {
			t.Errorf("%s: %v, want %s", name, err, h.says)
		}
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, before) {
			t.Errorf("%s: %q, %v", name, now, err)
		}
	}
	if err := os.Truncate(file, 0); err != nil { // a damaged file compares with nothing
		t.Fatal(err)
	}
	s.AddFile(conf, good, 0o600)
	s.AddFile(authority, ca, 0o644)
	step = cluster.FetchKubeconfig(c)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Error(err)
	}
}

// TestUndoRestoresFilesInTheWorkdir: the documents of the cluster before.
func TestUndoRestoresFilesInTheWorkdir(t *testing.T) {
	kase := recordedIn(t, standing(with(t, "")))
	kase.Workdir = t.TempDir()
	s := kase.Sim(t)
	file := filepath.Join(kase.Workdir, "applied", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("earlier\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	step := cluster.WriteApplied()
	h := kase.NewHost(t, s, step)
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if err := step.Rollback(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	all, globErr := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	if err != nil || globErr != nil || string(text) != "earlier\n" || len(all) != 1 {
		t.Errorf("%q, %v, %v", text, err, all)
	}
}

// TestWaitReadyOnlyLooks, and names what it waits for when time is up.
func TestWaitReadyOnlyLooks(t *testing.T) {
	two := steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11}\n    - {name: node2, address: 192.0.2.12}", "worker: [node1]", "worker: [node2]").Replace(steptest.Small))
	for name, c := range map[string]struct {
		damage func(*conntest.Sim)
		says   string
	}{
		"ready":        {func(*conntest.Sim) {}, ""},
		"no node":      {func(s *conntest.Sim) { s.RemoveAll("/var/lib/etcd/member/Node.core/-/node2") }, "node node2 cannot be read"},
		"no CoreDNS":   {func(s *conntest.Sim) { s.RemoveAll("/var/lib/etcd/member/Deployment.apps") }, "Deployment/coredns in namespace kube-system does not exist"},
		"no API":       {func(s *conntest.Sim) { s.RemoveAll("/etc/kubernetes/manifests") }, "node node1 cannot be read"},
		"out of reach": {func(s *conntest.Sim) { s.Break(conntest.Fault{At: 1, Stay: true}) }, "sim"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kase := standing(two)
				s := kase.Sim(t)
				step := cluster.WaitReady(two.Spec.Hosts, nil)
				h := kase.NewHost(t, s, step)
				first := s.Snapshot()
				c.damage(s)
				first = append(first[:0:0], s.Snapshot()...)
				v, err := step.Precheck(t.Context(), h)
				if (c.says == "") != (v == steps.Done) || name != "out of reach" && err != nil {
					t.Errorf("%v, %v", v, err)
				}
				err = step.Run(t.Context(), h)
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%v, want %s", err, c.says)
				}
				if err != nil && name != "out of reach" && len(steps.Advice(err)) == 0 {
					t.Errorf("%v: no advice", err)
				}
				if d := conntest.Diff(first, s.Snapshot()); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// TestWaitReadyWithoutAHost: a pod of CoreDNS on a node whose host is skipped is not waited
// for, as long as another one answers.
func TestWaitReadyWithoutAHost(t *testing.T) {
	two := steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11}\n    - {name: node2, address: 192.0.2.12}", "worker: [node1]", "worker: [node2]").Replace(steptest.Small))
	for name, c := range map[string]struct {
		away []string
		pods map[string]string // readiness by node
		done bool
	}{
		"one on the host that is skipped": {[]string{"node2"}, map[string]string{"node1": "True", "node2": "False"}, true},
		"no host is skipped":              {nil, map[string]string{"node1": "True", "node2": "False"}, false},
		"the other one is not ready":      {[]string{"node2"}, map[string]string{"node1": "False", "node2": "True"}, false},
		"none is ready":                   {[]string{"node2"}, map[string]string{"node2": "False"}, false},
		"one has no node":                 {[]string{"node2"}, map[string]string{"node1": "True", "": "False"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			kase := standing(two)
			kase.Before = func(s *conntest.Sim) {
				k := steptest.ExistingKube(two, s)
				k.Unhealthy = []string{"coredns"}
				for node, ready := range c.pods {
					k.Put(steptest.Object{"apiVersion": "v1", "kind": "Pod", "spec": steptest.Object{"nodeName": node},
						"metadata": steptest.Object{"namespace": "kube-system", "name": "coredns-" + node, "labels": steptest.Object{"k8s-app": "kube-dns"}},
						"status":   steptest.Object{"conditions": []any{steptest.Object{"type": "Ready", "status": ready}}}})
				}
			}
			step := cluster.WaitReady(two.Spec.Hosts[:1], c.away)
			v, err := step.Precheck(t.Context(), kase.NewHost(t, kase.Sim(t), step))
			if err != nil || (v == steps.Done) != c.done {
				t.Errorf("%v, %v", v, err)
			}
		})
	}
}

// TestDrainWithoutAnAPIServer, and drains the workers alone.
func TestDrainWithoutAnAPIServer(t *testing.T) {
	c := steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11}\n    - {name: node2, address: 192.0.2.12}", "worker: [node1]", "worker: [node1, node2]").Replace(steptest.Small))
	for name, stands := range map[string]bool{"stands": true, "is gone": false} {
		t.Run(name, func(t *testing.T) {
			kase := standing(c)
			if !stands {
				kase.Before = nil
			}
			s := kase.Sim(t)
			step := cluster.Drain(c)
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			var drained []string
			for _, call := range s.Calls() {
				if i := slices.Index(call.Argv, "drain"); call.Verb == connector.VerbExec && i > 0 {
					drained = append(drained, call.Argv[i+1])
				}
			}
			want := ""
			if stands {
				want = "node2"
			}
			if got := strings.Join(drained, " "); got != want {
				t.Errorf("drained %q, want %q", got, want)
			}
		})
	}
}

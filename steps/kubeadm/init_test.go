package kubeadm_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// programs gives a host a kubeadm that leaves behind what the real one does, and a
// kubectl that answers once it has.
func programs(s *conntest.Sim) {
	fail := connector.Result{Exit: 1, Stderr: []byte("connection refused\n")}
	s.HandleProgram("kubeadm", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		switch c.Argv[1] {
		case "init":
			if _, ok := s.File("/etc/kubernetes/manifests/kube-apiserver.yaml"); ok {
				return connector.Result{Exit: 1, Stderr: []byte("[ERROR FileAvailable--etc-kubernetes-manifests-kube-apiserver.yaml] exists\n")}, true
			}
			for _, p := range []string{"pki/ca.crt", "manifests/kube-apiserver.yaml", "admin.conf", "kubelet.conf"} {
				s.AddFile("/etc/kubernetes/"+p, "x", 0o600)
			}
			return connector.Result{Stdout: []byte("[addons] Applied essential addon: kube-proxy\n")}, true
		case "reset":
			for _, p := range []string{"pki", "manifests", "admin.conf", "kubelet.conf"} {
				s.RemoveAll("/etc/kubernetes/" + p)
			}
			return connector.Result{}, true
		}
		return connector.Result{}, false
	})
	s.HandleProgram("kubectl", func(connector.Cmd, []byte) (connector.Result, bool) {
		if _, ok := s.File("/etc/kubernetes/admin.conf"); !ok || len(s.Jobs()) > 0 { // it is at work until its job has ended
			return fail, true
		}
		return connector.Result{Stdout: []byte("daemonset.apps/kube-proxy\nconfigmap/kubeadm-config\n")}, true
	})
}

// ran counts the calls of a subcommand of kubeadm.
func ran(s *conntest.Sim, sub string) int {
	n := 0
	for _, c := range s.Calls() {
		if c.Verb == connector.VerbJobStart && slices.Contains(c.Args, sub) || len(c.Argv) > 1 && c.Argv[0] == "kubeadm" && c.Argv[1] == sub {
			n++
		}
	}
	return n
}

func TestInitKeepsItsLaws(t *testing.T) { synctest.Test(t, initKeepsItsLaws) }

func initKeepsItsLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	s := conntest.New(t)
	programs(s)
	kase := steptest.Case{Cluster: c}
	step := kubeadm.Init(c)
	look := func(want steps.Verdict) {
		t.Helper()
		if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || v != want {
			t.Fatalf("%v, %v", v, err)
		}
	}
	look(steps.Todo)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	look(steps.Done)
	if f, _ := s.File("/etc/kubernetes/kubexm-kubeadm.yaml"); f.Mode != 0o600 {
		t.Errorf("the config has mode %v", f.Mode)
	}
	if n := ran(s, "reset"); n != 0 {
		t.Errorf("an untouched host was reset %d times", n)
	}
	if jobs := s.Jobs(); len(jobs) != 0 {
		t.Errorf("jobs %v are left", jobs)
	}
}

// TestInitForgetsTheAuthorityOfAnEarlierCluster: a new cluster has a new CA, and the
// workdir's kubeconfig of the cluster before it is not compared with it.
func TestInitForgetsTheAuthorityOfAnEarlierCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := steptest.Cluster(t, steptest.Small)
		s := conntest.New(t)
		programs(s)
		kase := steptest.Case{Cluster: c, Workdir: t.TempDir()}
		file := filepath.Join(kase.Workdir, controlplane.OperatorConf)
		run := func() {
			t.Helper()
			if err := os.WriteFile(file, []byte("earlier"), 0o600); err != nil {
				t.Fatal(err)
			}
			step := kubeadm.Init(c)
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
		}
		run()
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is there still: %v", err)
		}
		run() // a control plane that exists keeps its CA
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	})
}

// TestInitAfterABreak breaks the wire at every command: the next run has a control
// plane in the end, whatever the first left behind.
func TestInitAfterABreak(t *testing.T) { synctest.Test(t, initAfterABreak) }

func initAfterABreak(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c}
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			s := conntest.New(t)
			programs(s)
			step := kubeadm.Init(c)
			h := kase.NewHost(t, s, step)
			s.ForgetCalls()
			s.Break(conntest.Fault{At: at, After: after})
			err := step.Run(t.Context(), h)
			s.Mend()
			if !slices.ContainsFunc(s.Calls(), func(c conntest.Call) bool { return c.Err != nil }) {
				break
			}
			// A wire that breaks while the job is watched is made again by itself.
			h = kase.NewHost(t, s, step)
			v, perr := step.Precheck(t.Context(), h)
			if perr != nil {
				t.Fatal(perr)
			}
			if v != steps.Done {
				if err == nil {
					t.Fatalf("%d after=%t: it said that all went well", at, after)
				}
				if err := step.Run(t.Context(), h); err != nil {
					t.Fatalf("%d after=%t: %v", at, after, err)
				}
			}
			if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); err != nil || v != steps.Done {
				t.Fatalf("%d after=%t: %v %v", at, after, v, err)
			}
			if n := ran(s, "reset"); n != 0 {
				t.Errorf("%d after=%t: a control plane that was being made, or made, was reset", at, after)
			}
		}
	}
}

// TestAnIncompleteInitIsResetAndRepeated: what a crash of the host leaves.
func TestAnIncompleteInitIsResetAndRepeated(t *testing.T) { synctest.Test(t, initHalfWay) }

func initHalfWay(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	s := conntest.New(t)
	programs(s)
	s.AddFile("/etc/kubernetes/manifests/kube-apiserver.yaml", "x", 0o600)
	kase := steptest.Case{Cluster: c}
	step := kubeadm.Init(c)
	if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
		t.Fatal(err)
	}
	if n := ran(s, "reset"); n != 1 {
		t.Errorf("%d resets", n)
	}
	// And one that is there, with a kubectl that does not answer just now, is told apart from none.
	if _, ok := s.File("/etc/kubernetes/admin.conf"); !ok {
		t.Error("no control plane")
	}
}

func TestInitThatFailsSaysWhereToLook(t *testing.T) { synctest.Test(t, initThatFails) }

func initThatFails(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	s := conntest.New(t)
	s.HandleProgram("kubeadm", func(connector.Cmd, []byte) (connector.Result, bool) {
		return connector.Result{Exit: 1, Stderr: []byte("[kubelet-check] The kubelet is not healthy\n")}, true
	})
	kase := steptest.Case{Cluster: c}
	step := kubeadm.Init(c)
	err := step.Run(t.Context(), kase.NewHost(t, s, step))
	if err == nil || !strings.Contains(err.Error(), "The kubelet is not healthy") || !strings.Contains(strings.Join(steps.Advice(err), " "), "journalctl -u kubelet") {
		t.Errorf("%v; %q", err, steps.Advice(err))
	}
}

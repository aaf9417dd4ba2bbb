package kubeadm_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// pair is a master that stands and a worker that is to join it, in one run.
type pair struct {
	t              *testing.T
	kube           *steptest.Kube
	master, worker *conntest.Sim
	first          conntest.Snapshot // the worker before
	mint, join     steps.Step
	board          *steps.Board
	kase           steptest.Case
}

func newPair(t *testing.T) *pair {
	t.Helper()
	c := steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11}\n    - {name: node2, address: 192.0.2.12}", "worker: [node1]", "worker: [node2]").Replace(steptest.Small))
	kube, sims := steptest.ExistingKubeWith(t, c)
	p := &pair{t: t, kube: kube, master: sims["node1"], worker: sims["node2"], mint: kubeadm.MintToken(c.Spec.Hosts[1:]), join: kubeadm.JoinWorker(c), kase: steptest.Case{Cluster: c}}
	p.first = p.worker.Snapshot()
	p.again()
	return p
}

// again begins a new run.
func (p *pair) again() { p.board = &steps.Board{} }

func (p *pair) on(name string, s *conntest.Sim, step steps.Step) *steps.Host {
	p.t.Helper()
	kase := p.kase
	for _, h := range kase.Cluster.Spec.Hosts {
		if h.Name == name {
			kase.Host = h
		}
	}
	return kase.NewHost(p.t, s, step).WithBoard(p.board).ForStep(step.Meta())
}

// token mints one, as the engine does: looking first.
func (p *pair) token() {
	p.t.Helper()
	h := p.on("node1", p.master, p.mint)
	v, err := p.mint.Precheck(p.t.Context(), h)
	if err == nil && v == steps.Todo {
		err = p.mint.Run(p.t.Context(), h)
	}
	if err != nil || !h.Wrote() {
		p.t.Fatalf("%v, written: %t", err, h.Wrote())
	}
}

func (p *pair) look(want steps.Verdict) {
	p.t.Helper()
	if v, err := p.join.Precheck(p.t.Context(), p.on("node2", p.worker, p.join)); err != nil || v != want {
		p.t.Fatalf("%v, %v", v, err)
	}
}

func (p *pair) mustJoin() {
	p.t.Helper()
	if err := p.join.Run(p.t.Context(), p.on("node2", p.worker, p.join)); err != nil {
		p.t.Fatal(err)
	}
}

func TestJoinKeepsItsLaws(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.look(steps.Todo)
		if d := conntest.Diff(p.first, p.worker.Snapshot()); d != "" {
			t.Errorf("looking changes nothing:\n%s", d)
		}
		p.token()
		p.mustJoin()
		p.look(steps.Done)
		if p.kube.Object("v1", "Node", "", "node2") == nil {
			t.Error("the cluster does not know it")
		}
		end := p.worker.Snapshot()
		p.again()
		p.token() // none: nobody joins
		p.look(steps.Done)
		if d := conntest.Diff(end, p.worker.Snapshot()); d != "" {
			t.Errorf("looking again changes nothing:\n%s", d)
		}
		// The token is in no command and on no disk.
		for _, s := range []*conntest.Sim{p.master, p.worker} {
			for _, c := range s.Calls() {
				if strings.Contains(c.String(), "abcdef.") {
					t.Errorf("%s", c)
				}
			}
		}
		if files := p.worker.Below("/run/kubexm"); slices.Contains(files, "/run/kubexm/kubeadm-join.yaml") || len(p.worker.Jobs()) > 0 {
			t.Errorf("left: %v, jobs %v", files, p.worker.Jobs())
		}
	})
}

// TestAStoppedKubeletIsStarted: the kubelet of a worker does not run, as right after a
// boot. It is started, and nothing is joined or reset, whether the cluster holds the
// node for ready still, or not any more.
func TestAStoppedKubeletIsStarted(t *testing.T) {
	for name, ready := range map[string]bool{"the node is ready still": true, "the node is not ready": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				p.token()
				p.mustJoin()
				p.again()
				if ready {
					p.token() // none
				}
				p.worker.StopUnit("kubelet.service")
				if !ready {
					p.token()
				}
				p.look(steps.Todo)
				p.worker.ForgetCalls()
				p.mustJoin()
				p.look(steps.Done)
				for _, c := range p.worker.Calls() {
					if strings.Contains(c.String(), "reset") || strings.Contains(c.String(), "job.start") {
						t.Errorf("ran %s", c)
					}
				}
			})
		})
	}
}

// TestJoinReadsWhatItDeclares: without the token's step before it, it is an error.
func TestJoinReadsWhatItDeclares(t *testing.T) {
	p := newPair(t)
	err := p.join.Run(t.Context(), p.on("node2", p.worker, p.join))
	if err == nil || !strings.Contains(err.Error(), "kubeadm.join") {
		t.Errorf("%v", err)
	}
	if m := p.join.Meta(); len(m.Reads) != 1 || m.Reads[0].Name() != p.mint.Meta().Writes[0].Name() {
		t.Errorf("%v", m.Reads)
	}
}

// TestJoinOfANodeThatTheClusterKnows: its kubelet was wiped, and nobody told the cluster.
func TestJoinOfANodeThatTheClusterKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.token()
		p.mustJoin()
		p.worker.RemoveAll("/etc/kubernetes")
		p.worker.RemoveAll("/var/lib/kubelet")
		p.again()
		p.token()
		err := p.join.Run(t.Context(), p.on("node2", p.worker, p.join))
		if err == nil || !strings.Contains(strings.Join(steps.Advice(err), " "), "kubectl delete node node2") {
			t.Errorf("%v, advice %q", err, steps.Advice(err))
		}
	})
}

// TestJoinAfterABreak breaks the wire at every command: undoing takes the node
// back, and the next run joins it, whatever the first left behind.
func TestJoinAfterABreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []bool{false, true} {
			for at := 1; ; at++ {
				if !joinBroken(t, conntest.Fault{At: at, After: after}) {
					break
				}
			}
		}
	})
}

func joinBroken(t *testing.T, f conntest.Fault) (broke bool) {
	t.Helper()
	p := newPair(t)
	p.token()
	h := p.on("node2", p.worker, p.join)
	p.worker.ForgetCalls()
	p.worker.Break(f)
	err := p.join.Run(t.Context(), h)
	p.worker.Mend()
	if !slices.ContainsFunc(p.worker.Calls(), func(c conntest.Call) bool { return c.Err != nil }) {
		return false
	}
	if err != nil { // one way out of it
		if err := p.join.Rollback(t.Context(), h); err != nil {
			t.Fatalf("%+v: rollback: %v", f, err)
		}
		p.look(steps.Todo)
	}
	// The cluster may know the node by now: what undoing cannot take back is named to a person.
	p.again()
	p.token()
	if v, err := p.join.Precheck(t.Context(), p.on("node2", p.worker, p.join)); err != nil || v == steps.Done {
		return true
	}
	err = p.join.Run(t.Context(), p.on("node2", p.worker, p.join))
	known := err != nil && strings.Contains(strings.Join(steps.Advice(err), " "), "kubectl delete node")
	if err != nil && !known {
		t.Fatalf("%+v: %v", f, err)
	}
	if !known {
		p.look(steps.Done)
	}
	return true
}

// TestResetOfANode to what it was before it joined, also after a break at
// every command; a node that never joined is left alone.
func TestResetOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reset := kubeadm.ResetWorker()
		for at := 0; ; at++ {
			p := newPair(t)
			if v, err := reset.Precheck(t.Context(), p.on("node2", p.worker, reset)); err != nil || v != steps.Done {
				t.Fatalf("a node that never joined: %v, %v", v, err)
			}
			p.token()
			p.mustJoin()
			h := p.on("node2", p.worker, reset)
			p.worker.ForgetCalls()
			p.worker.Break(conntest.Fault{At: at})
			err := reset.Run(t.Context(), h)
			p.worker.Mend()
			broke := slices.ContainsFunc(p.worker.Calls(), func(c conntest.Call) bool { return c.Err != nil })
			if broke != (err != nil) {
				t.Fatalf("%d: broke: %t, %v", at, broke, err)
			}
			if at > 0 && !broke {
				return
			}
			if err != nil {
				if err := reset.Run(t.Context(), p.on("node2", p.worker, reset)); err != nil {
					t.Fatalf("%d: %v", at, err)
				}
			}
			if v, err := reset.Precheck(t.Context(), p.on("node2", p.worker, reset)); err != nil || v != steps.Done {
				t.Fatalf("%d: %v, %v", at, v, err)
			}
			if d := conntest.Diff(p.first, p.worker.Snapshot()); d != "" {
				t.Errorf("%d: after the reset:\n%s", at, d)
			}
			if n := ran(p.worker, "reset"); n == 0 {
				t.Errorf("%d: kubeadm was not asked", at)
			}
		}
	})
}

// TestMintTokenOnlyIfAHostJoins: a token is a secret, and short-lived.
func TestMintTokenOnlyIfAHostJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.token()
		p.mustJoin()
		p.again()
		p.master.ForgetCalls()
		p.token()
		for _, c := range p.master.Calls() {
			if c.Verb == connector.VerbExec && c.Argv[0] == "kubeadm" {
				t.Errorf("%s", c)
			}
		}
	})
}

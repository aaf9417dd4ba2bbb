package cluster_test

import (
	"context"
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
	"github.com/mensylisir/kubexm/steps/steptest"
)

// beforeDrain is the annotation of nodes that are drained.
const beforeDrain = "kubexm.mensylisir.io/before-drain"

// nodes is a cluster of a master that is a worker too, and two workers.
func nodes(t *testing.T) *manifest.Cluster {
	t.Helper()
	return steptest.Cluster(t, strings.NewReplacer("192.0.2.11}", "192.0.2.11}\n    - {name: node2, address: 192.0.2.12}\n    - {name: node3, address: 192.0.2.13}",
		"worker: [node1]", "worker: [node1, node2, node3]").Replace(steptest.Small))
}

// drained is the environment of a drain: a cluster with pods, and what its steps reported.
type drained struct {
	*testing.T
	c     *manifest.Cluster
	k     *steptest.Kube
	s     *conntest.Sim
	kase  steptest.Case
	waits []string
	found steps.Findings // warnings and notes
}

// draining calls try on a cluster with objects, in a bubble of its own.
func draining(t *testing.T, try func(*drained), objects ...steptest.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &drained{T: t, c: nodes(t)}
		d.kase = steptest.Case{Cluster: d.c, Before: func(s *conntest.Sim) { d.k = steptest.ExistingKube(d.c, s) }, Report: func(f steps.Finding) { d.found = append(d.found, f) }}
		d.s = d.kase.Sim(t)
		for _, o := range objects {
			d.k.Put(o)
		}
		try(d)
	})
}

// host is the lead in a new run.
func (d *drained) host(step steps.Step) *steps.Host {
	return d.kase.NewHost(d.T, d.s, step).WithWaitReport(func(what string) { d.waits = append(d.waits, what) })
}

// run runs a step and undoes it after an error, as the engine does.
func (d *drained) run(ctx context.Context, step steps.Step) error {
	h := d.host(step)
	err := step.Run(ctx, h)
	if err == nil {
		if v, err := step.Precheck(ctx, d.host(step)); !step.Meta().Always && (v != steps.Done || err != nil) {
			d.Errorf("after the run: %v, %v", v, err)
		}
	} else if !step.Meta().ReadOnly {
		if err := step.Rollback(context.WithoutCancel(ctx), h); err != nil {
			d.Error(err)
		}
	}
	return err
}

// node checks whether a node is schedulable, and what its annotation is.
func (d *drained) node(name string, schedulable bool, before string) {
	d.Helper()
	o := d.k.Object("v1", "Node", "", name)
	spec, _ := o["spec"].(steptest.Object)
	meta, _ := o["metadata"].(steptest.Object)
	annotations, _ := meta["annotations"].(steptest.Object)
	got, _ := annotations[beforeDrain].(string)
	if (spec["unschedulable"] == true) == schedulable || got != before {
		d.Errorf("node %s: %v", name, o)
	}
}

// argvs are the kubectl commands that contain a word.
func (d *drained) argvs(word string) []string {
	var out []string
	for _, c := range d.s.Calls() {
		if c.Verb == connector.VerbExec && slices.Contains(c.Argv, word) {
			out = append(out, strings.Join(c.Argv[5:], " "))
		}
	}
	return out
}

// newPod is a pod with an owner, "StatefulSet web"; "" is none. Labels are app and its name.
func newPod(name, node, owner string) steptest.Object {
	meta := steptest.Object{"namespace": "default", "name": name, "labels": steptest.Object{"app": strings.TrimRight(name, "-0123456789")}}
	if kind, of, ok := strings.Cut(owner, " "); ok {
		meta["ownerReferences"] = []any{steptest.Object{"kind": kind, "name": of, "controller": true}}
	}
	return steptest.Object{"apiVersion": "v1", "kind": "Pod", "metadata": meta,
		"spec":   steptest.Object{"nodeName": node, "terminationGracePeriodSeconds": 30.0, "containers": []any{steptest.Object{"name": "c"}}},
		"status": steptest.Object{"phase": "Running", "conditions": []any{steptest.Object{"type": "Ready", "status": "True"}}}}
}

// newBudget is a PodDisruptionBudget of the pods of an app.
func newBudget(name, app string, minAvailable int) steptest.Object {
	return steptest.Object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": steptest.Object{"namespace": "default", "name": name},
		"spec": steptest.Object{"minAvailable": float64(minAvailable), "selector": steptest.Object{"matchLabels": steptest.Object{"app": app}}}}
}

func changed[T any](o steptest.Object, field, key string, value T) steptest.Object {
	inner, _ := o[field].(steptest.Object)
	inner[key] = value
	return o
}

func has(t *testing.T, where string, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s: missing %q in %s", where, w, got)
		}
	}
}

// TestDrainKeepsItsLaws: on a node without pods, because an eviction is not undone.
func TestDrainKeepsItsLaws(t *testing.T) {
	c := nodes(t)
	kase := steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c)}
	drain := cluster.DrainNode(c.Spec.Hosts[1], cluster.DrainOptions{})
	steptest.Do(t, kase, drain, true)
	if m := drain.Meta(); m.Risk != steps.Disruptive || m.Timeout <= cluster.DefaultDrainTimeout || m.Retry.Times > 0 {
		t.Errorf("%+v", m)
	}
	kase.Before = func(s *conntest.Sim) {
		steptest.ExistingCluster(c)(s)
		if err := drain.Run(t.Context(), kase.NewHost(t, s, drain)); err != nil {
			t.Fatal(err)
		}
	}
	steptest.Do(t, kase, cluster.UncordonNode(c.Spec.Hosts[1]), false)
	steptest.Do(t, kase, cluster.UncordonOthers(c.Spec.Hosts[:1]), false)
	others := cluster.UncordonOthers(c.Spec.Hosts[1:])
	if v, err := others.Precheck(t.Context(), kase.NewHost(t, kase.Sim(t), others)); v != steps.Done || err != nil {
		t.Errorf("a node that is drained next: %v, %v", v, err)
	}
}

// TestDrainMovesPods: all that evictions may move are on other nodes afterwards, by evictions
// alone; the pods of DaemonSets and static pods stay. A second run evicts nothing.
func TestDrainMovesPods(t *testing.T) {
	draining(t, func(d *drained) {
		first := d.k.Object("v1", "Node", "", "node1")
		step := cluster.DrainNode(d.c.Spec.Hosts[0], cluster.DrainOptions{})
		if err := d.run(d.Context(), step); err != nil {
			d.Fatal(err)
		}
		if left := d.k.Pods("node1"); len(left) > 0 {
			d.Errorf("left: %q", left)
		}
		if moved := len(d.k.Pods("node2")) + len(d.k.Pods("node3")); moved != 4 {
			d.Errorf("%d pods on other nodes", moved)
		}
		d.node("node1", false, "schedulable")
		drains := d.argvs("drain")
		if len(drains) != 1 || drains[0] != "--request-timeout=10s drain node1 --timeout=10s --ignore-daemonsets --delete-emptydir-data --skip-wait-for-delete-timeout=0" {
			d.Errorf("%q", drains)
		}
		back := cluster.UncordonNode(d.c.Spec.Hosts[0])
		if err := d.run(d.Context(), back); err != nil {
			d.Fatal(err)
		}
		d.node("node1", true, "")
		if now := d.k.Object("v1", "Node", "", "node1"); len(now) != len(first) {
			d.Errorf("before %v, after %v", first, now)
		}
	}, newPod("web-0", "node1", "StatefulSet web"), newPod("web-1", "node1", "StatefulSet web"), newPod("web-2", "node2", "StatefulSet web"), newBudget("web", "web", 2),
		changed(newPod("api-1", "node1", "ReplicaSet api-5f"), "spec", "volumes", []any{steptest.Object{"name": "tmp", "emptyDir": steptest.Object{}}}),
		changed(newPod("done-1", "node1", "Job done"), "status", "phase", "Succeeded"))
}

// TestDrainWaitsForABudget, names it every ten seconds, and gives up after its timeout. No pod
// is deleted, and the node is schedulable again. Once the budget allows it, the drain goes on.
func TestDrainWaitsForABudget(t *testing.T) {
	pods := []steptest.Object{newPod("web-0", "node2", "StatefulSet web"), newPod("web-1", "node3", "StatefulSet web"), newBudget("web", "web", 2), newPod("api-1", "node2", "ReplicaSet api-5f")}
	draining(t, func(d *drained) {
		begin := time.Now()
		step := cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{Timeout: 2 * time.Minute})
		err := d.run(d.Context(), step)
		if took := time.Since(begin); err == nil || took < 2*time.Minute || took > 2*time.Minute+20*time.Second {
			d.Fatalf("%v after %s", err, took)
		}
		has(t, "error", err.Error(), "node node2 was not drained within 2m0s", "1 pod is left: default/web-0 (PodDisruptionBudget web allows no disruption: it requires 2 healthy pods, 2 are healthy)")
		has(t, "advice", strings.Join(steps.Advice(err), " "), "--drain-timeout", "--force-drain")
		if len(d.waits) < 12 {
			d.Errorf("%d reports", len(d.waits))
		}
		has(t, "report", d.waits[len(d.waits)-1], "drain of node node2: 1 pod is left: default/web-0 (PodDisruptionBudget web")
		if got := d.k.Pods("node2"); !slices.Equal(got, []string{"default/web-0"}) {
			d.Errorf("%q", got)
		}
		d.node("node2", true, "")
		if bad := append(d.argvs("--force"), d.argvs("--disable-eviction")...); len(bad) > 0 {
			d.Errorf("%q", bad)
		}
	}, pods...)
	draining(t, func(d *drained) {
		go func() {
			time.Sleep(time.Minute)
			d.k.Put(newPod("web-9", "node3", "StatefulSet web"))
		}()
		begin := time.Now()
		if err := d.run(d.Context(), cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{})); err != nil || time.Since(begin) > 75*time.Second {
			d.Errorf("%v after %s", err, time.Since(begin))
		}
	}, pods...)
}

// TestDrainByForce: what is left after the timeout is deleted, and not before; pods without a
// controller are evicted at once.
func TestDrainByForce(t *testing.T) {
	draining(t, func(d *drained) {
		begin := time.Now()
		if err := d.run(d.Context(), cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{Timeout: time.Minute, Force: true})); err != nil {
			d.Fatal(err)
		}
		if took := time.Since(begin); took < time.Minute || took > 90*time.Second {
			d.Errorf("took %s", took)
		}
		if left := d.k.Pods("node2"); len(left) > 0 {
			d.Errorf("left: %q", left)
		}
		for _, argv := range d.argvs("drain") {
			has(t, "argv", argv, "--force")
		}
		if n := len(d.argvs("--disable-eviction")); n != 1 {
			d.Errorf("%d calls without evictions", n)
		}
	}, newPod("web-0", "node2", "StatefulSet web"), newBudget("web", "web", 1), newPod("bare", "node2", ""))
	draining(t, func(d *drained) {
		d.k.Lingering = []string{"default/web-0"}
		err := d.run(d.Context(), cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{Timeout: time.Minute, Force: true}))
		if err == nil {
			d.Fatal("a pod that does not end was passed over")
		}
		has(t, "error", err.Error(), "deleted pods of node node2 did not end within 5m0s", "default/web-0 (is being deleted, with a grace period of 30 s)")
		d.node("node2", true, "")
	}, newPod("web-0", "node2", "StatefulSet web"))
}

// TestDrainLeavesPodsWithoutAController: nothing is evicted, and the error names them. One that
// a user has deleted is waited for.
func TestDrainLeavesPodsWithoutAController(t *testing.T) {
	draining(t, func(d *drained) {
		step := cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{})
		err := d.run(d.Context(), step)
		if err == nil {
			d.Fatal("a pod without a controller was passed over")
		}
		has(t, "error", err.Error(), "node node2 has pods without a controller, which nothing starts again: default/bare, default/other")
		has(t, "advice", strings.Join(steps.Advice(err), " "), "--force-drain")
		if got := d.k.Pods("node2"); len(got) != 3 || len(d.argvs("drain")) > 0 {
			d.Errorf("%q, %q", got, d.argvs("drain"))
		}
		d.node("node2", true, "")
		d.k.Drop("v1", "Pod", "default", "other")
		d.k.Put(changed(newPod("bare", "node2", ""), "metadata", "deletionTimestamp", "2026-01-01T00:00:00Z"))
		go func() {
			time.Sleep(30 * time.Second)
			d.k.Drop("v1", "Pod", "default", "bare")
		}()
		if err := d.run(d.Context(), step); err != nil {
			d.Error(err)
		}
	}, newPod("bare", "node2", ""), newPod("other", "node2", ""), newPod("web-0", "node2", "StatefulSet web"))
}

// TestDrainRemembersACordon: a node that was cordoned before stays so, also if the run that
// drained it was interrupted and another one uncordons it.
func TestDrainRemembersACordon(t *testing.T) {
	cordoned := func(d *drained) {
		d.k.Put(steptest.Object{"apiVersion": "v1", "kind": "Node", "metadata": steptest.Object{"name": "node2"}, "spec": steptest.Object{"unschedulable": true}})
	}
	for name, prepare := range map[string]func(*drained){"schedulable": func(*drained) {}, "cordoned": cordoned} {
		t.Run(name, func(t *testing.T) {
			draining(t, func(d *drained) {
				prepare(d)
				node := d.c.Spec.Hosts[1]
				ctx, cancel := context.WithCancel(d.Context())
				go func() { time.Sleep(30 * time.Second); cancel() }()
				step := cluster.DrainNode(node, cluster.DrainOptions{})
				if err := step.Run(ctx, d.host(step)); err == nil { // killed: nothing is undone
					d.Fatal("the drain was not interrupted")
				}
				d.node("node2", false, name)
				if err := d.run(d.Context(), cluster.DrainNode(node, cluster.DrainOptions{Timeout: time.Minute})); err == nil {
					d.Fatal("the budget was passed over")
				}
				d.node("node2", name == "schedulable", "")
				d.k.Drop("policy/v1", "PodDisruptionBudget", "default", "web")
				if err := d.run(d.Context(), step); err != nil {
					d.Fatal(err)
				}
				d.node("node2", false, name)
				if err := d.run(d.Context(), cluster.UncordonNode(node)); err != nil {
					d.Fatal(err)
				}
				d.node("node2", name == "schedulable", "")
			}, newPod("web-0", "node2", "StatefulSet web"), newBudget("web", "web", 1))
		})
	}
	draining(t, func(d *drained) { // somebody cordoned it, and no drain did
		cordoned(d)
		step := cluster.UncordonNode(d.c.Spec.Hosts[1])
		if v, err := step.Precheck(d.Context(), d.host(step)); v != steps.Done || err != nil {
			d.Errorf("%v, %v", v, err)
		}
		d.node("node2", false, "")
	})
}

// TestDrainOfNoNode: one that is deleted needs neither a drain nor its end.
func TestDrainOfNoNode(t *testing.T) {
	draining(t, func(d *drained) {
		d.k.Drop("v1", "Node", "", "node2")
		for _, step := range []steps.Step{cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{}), cluster.UncordonNode(d.c.Spec.Hosts[1])} {
			if v, err := step.Precheck(d.Context(), d.host(step)); v != steps.Done || err != nil {
				d.Errorf("%s: %v, %v", step.Meta().Name, v, err)
			}
		}
	})
}

// TestDrainSurvivesBreaks: a connection that breaks at any command, and an API server that is
// silent for a minute. One that is gone for good ends the drain.
func TestDrainSurvivesBreaks(t *testing.T) {
	pods := []steptest.Object{newPod("web-0", "node2", "StatefulSet web"), newPod("web-1", "node3", "StatefulSet web"), newBudget("web", "web", 2)}
	for at := 3; at <= 12; at++ {
		draining(t, func(d *drained) {
			step := cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{})
			h := d.host(step)
			d.s.ForgetCalls()
			d.s.Break(conntest.Fault{At: at, After: at%2 == 0})
			go func() {
				time.Sleep(time.Minute)
				d.k.Put(newPod("web-9", "node3", "StatefulSet web"))
			}()
			if err := step.Run(d.Context(), h); err != nil {
				d.Errorf("break at %d: %v", at, err)
			}
		}, pods...)
	}
	draining(t, func(d *drained) {
		go func() {
			time.Sleep(15 * time.Second)
			d.k.Silence("node1", true)
			time.Sleep(time.Minute)
			d.k.Silence("node1", false)
			d.k.Put(newPod("web-9", "node3", "StatefulSet web"))
		}()
		if err := d.run(d.Context(), cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{})); err != nil {
			d.Error(err)
		}
	}, pods...)
	draining(t, func(d *drained) {
		step := cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{})
		h := d.host(step)
		d.s.ForgetCalls()
		d.s.Break(conntest.Fault{At: 6, Stay: true})
		begin := time.Now()
		if err := step.Run(d.Context(), h); err == nil || time.Since(begin) > 2*time.Minute {
			d.Errorf("%v after %s", err, time.Since(begin))
		}
	}, pods...)
}

// TestDrainSaysWhatRefuses: an eviction that is refused for another reason than a budget.
func TestDrainSaysWhatRefuses(t *testing.T) {
	draining(t, func(d *drained) {
		err := d.run(d.Context(), cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{Timeout: 30 * time.Second}))
		if err == nil {
			d.Fatal("evicted")
		}
		has(t, "error", err.Error(), "PodDisruptionBudgets all and web both cover it, and a pod with two is not evicted")
		d.s.Handle(func(c connector.Cmd) bool { return slices.Contains(c.Argv, "drain") }, func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Exit: 1, Stderr: []byte(`error: unable to drain node "node2" due to error: [error when evicting pods/"web-0" -n "default": admission webhook "guard" denied the request, error when evicting pods/"x" -n "default": global timeout reached: 10s], continuing command...` + "\n")}, true
		})
		d.k.Drop("policy/v1", "PodDisruptionBudget", "default", "all")
		d.k.Drop("policy/v1", "PodDisruptionBudget", "default", "web")
		err = d.run(d.Context(), cluster.DrainNode(d.c.Spec.Hosts[1], cluster.DrainOptions{Timeout: 30 * time.Second}))
		if err == nil {
			d.Fatal("evicted")
		}
		has(t, "error", err.Error(), `default/web-0 (admission webhook "guard" denied the request)`)
	}, newPod("web-0", "node2", "StatefulSet web"), newBudget("web", "web", 0), newBudget("all", "web", 0))
}

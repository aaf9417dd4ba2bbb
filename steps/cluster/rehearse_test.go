package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// rehearsed returns the findings of a rehearsal of nodes, by default all: "error node2: …".
func (d *drained) rehearsed(o cluster.DrainOptions, names ...string) []string {
	d.Helper()
	d.found = nil
	hosts := d.c.Spec.Hosts
	if len(names) > 0 {
		hosts = d.c.Only(names).Spec.Hosts
	}
	step := cluster.RehearseDrain(hosts, o)
	first := d.s.Snapshot()
	d.s.ForgetCalls()
	err := step.Run(d.Context(), d.host(step))
	if diff := conntest.Diff(first, d.s.Snapshot()); diff != "" {
		d.Errorf("a rehearsal changed something:\n%s", diff)
	}
	found, failed := steps.Split(err)
	if err != nil && len(failed) > 0 {
		d.Fatal(err)
	}
	var out []string
	for _, f := range append(found, d.found...) {
		if f.Level() == steps.LevelError && f.Advice == "" {
			d.Errorf("no advice: %s", f.What)
		}
		out = append(out, fmt.Sprintf("%s %s: %s", f.Level(), f.Host, f.What))
	}
	slices.Sort(out)
	return out
}

func (d *drained) equal(when string, got []string, want ...string) {
	d.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		d.Errorf("%s:\n%s\nwant:\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRehearsalKeepsItsLaws: it is a check, and changes nothing.
func TestRehearsalKeepsItsLaws(t *testing.T) {
	c := with(t, "")
	kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) {
		k := steptest.ExistingKube(c, s)
		k.Put(newPod("bare", "node1", ""))
		k.Put(newPod("web-0", "node1", "StatefulSet web"))
		k.Put(newBudget("web", "web", 1))
	}}
	if found := steptest.Check(t, kase, cluster.RehearseDrain(c.Spec.Hosts, cluster.DrainOptions{})); len(found) != 2 {
		t.Errorf("%+v", found)
	}
}

// TestRehearsalFindsAllAtOnce: what would stop a drain, on all nodes, with few commands.
func TestRehearsalFindsAllAtOnce(t *testing.T) {
	objects := []steptest.Object{
		newPod("bare", "node2", ""),
		newPod("web-0", "node1", "StatefulSet web"), newPod("web-1", "node2", "StatefulSet web"), newBudget("web", "web", 2),
		newPod("two-0", "node3", "StatefulSet two"), newPod("two-1", "node3", "StatefulSet two"), newBudget("two-a", "two", 0), newBudget("two-b", "two", 0),
		changed(newPod("db-0", "node3", "StatefulSet db"), "spec", "volumes", []any{steptest.Object{"name": "a", "emptyDir": steptest.Object{}}, steptest.Object{"name": "b", "hostPath": steptest.Object{"path": "/srv"}}}),
		changed(newPod("over-1", "node3", "Job over"), "status", "phase", "Succeeded"),
		changed(newPod("ends-1", "node3", ""), "metadata", "deletionTimestamp", "2026-01-01T00:00:00Z"),
	}
	web := "its eviction is refused: PodDisruptionBudget web allows no disruption: it requires 2 healthy pods, 2 are healthy"
	two := "its eviction is refused: PodDisruptionBudgets two-a and two-b both cover it, and a pod with two is not evicted"
	rest := []string{
		"warning node3: pod default/db-0 (StatefulSet db): it is the only replica, and is missing until it runs on another node",
		"note node3: pod default/db-0 (StatefulSet db): the content of its emptyDir volumes is deleted; its hostPath data stays on the node",
	}
	refused := func(level string) []string {
		return append([]string{
			level + " node1: pod default/web-0 (StatefulSet web): " + web, level + " node2: pod default/web-1 (StatefulSet web): " + web,
			level + " node3: pod default/two-0 (StatefulSet two): " + two, level + " node3: pod default/two-1 (StatefulSet two): " + two,
		}, rest...)
	}
	bare := " node2: pod default/bare (no controller): nothing starts it again on another node"
	draining(t, func(d *drained) {
		d.equal("without force", d.rehearsed(cluster.DrainOptions{}), append(refused("error"), "error"+bare)...)
		asked, evictions := 0, 0
		for _, c := range d.s.Calls() {
			switch {
			case c.Verb != connector.VerbExec:
			case slices.Contains(c.Argv, "create"):
				evictions++
			default:
				asked++
			}
		}
		if asked != 3 || evictions != 7 {
			d.Errorf("%d lists, %d evictions", asked, evictions)
		}
		d.equal("with force", d.rehearsed(cluster.DrainOptions{Force: true}), append(refused("warning"), "warning"+bare)...)
		d.k.Put(steptest.Object{"apiVersion": "v1", "kind": "Node", "metadata": steptest.Object{"name": "node1", "annotations": steptest.Object{beforeDrain: "schedulable"}}})
		d.equal("after an interrupted drain", d.rehearsed(cluster.DrainOptions{}),
			append(refused("warning"), "error"+bare, "note node1: node node1 is cordoned by a drain that was interrupted")...)
	}, objects...)
}

// TestRehearsalLooksForRoom: requests of the pods on a node against what the others have free.
func TestRehearsalLooksForRoom(t *testing.T) {
	large := func(name, node, cpu string) steptest.Object {
		return changed(newPod(name, node, "ReplicaSet "+strings.TrimRight(name, "-0123456789")), "spec", "containers",
			[]any{steptest.Object{"name": "c", "resources": steptest.Object{"requests": steptest.Object{"cpu": cpu, "memory": "1Gi"}}}})
	}
	pods := []steptest.Object{large("a-1", "node1", "3500m"), large("a-2", "node2", "2"), large("a-3", "node3", "3")}
	draining(t, func(d *drained) {
		d.equal("one after another", d.rehearsed(cluster.DrainOptions{}),
			"warning node1: the pods of node1 request more than the other schedulable nodes (2) have free: 3.5 of 3 CPUs",
			"warning node2: the pods of node2 request more than the other schedulable nodes (2) have free: 2 of 1.5 CPUs",
			"warning node3: the pods of node3 request more than the other schedulable nodes (2) have free: 3 of 2.5 CPUs")
		d.equal("for good", d.rehearsed(cluster.DrainOptions{Permanent: true}, "node2", "node3"),
			"error node2: the pods of node2, node3 request more than the other schedulable nodes (1) have free: 5 of 0.5 CPUs")
		d.k.Put(steptest.Object{"apiVersion": "v1", "kind": "Node", "metadata": steptest.Object{"name": "node1"}, "spec": steptest.Object{"taints": []any{steptest.Object{"key": "k", "effect": "NoSchedule"}}}})
		d.k.Drop("v1", "Node", "", "node3")
		d.equal("with nowhere to go", d.rehearsed(cluster.DrainOptions{}, "node2"),
			"warning node2: the pods of node2 request more than the other schedulable nodes (0) have free: 2 of 0 CPUs, 1.0 of 0.0 GiB of memory, 1 of 0 pods")
	}, pods...)
}

// TestRehearsalWithoutAnAPIServer: that nobody answers is no finding.
func TestRehearsalWithoutAnAPIServer(t *testing.T) {
	draining(t, func(d *drained) {
		step := cluster.RehearseDrain(d.c.Spec.Hosts, cluster.DrainOptions{})
		for name, says := range map[string]string{
			"refused": "The connection to the server 192.0.2.11:6443 was refused - did you specify the right host or port?\n",
			"denied":  "Error from server (Forbidden): pods \"web-0\" is forbidden\n", "gone": "Error from server (NotFound): pods \"web-0\" not found\n",
		} {
			d.s.Handle(func(c connector.Cmd) bool { return slices.Contains(c.Argv, "create") }, steptest.Fails(says))
			found, failed := steps.Split(step.Run(d.Context(), d.host(step)))
			if want := map[string][2]int{"refused": {0, 1}, "denied": {2, 0}, "gone": {0, 0}}[name]; len(found) != want[0] || len(failed) != want[1] {
				d.Errorf("%s: %v, %v", name, found, failed)
			}
		}
	}, newPod("web-0", "node2", "StatefulSet web"), newPod("web-1", "node3", "StatefulSet web"))
}

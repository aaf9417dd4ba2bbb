package installer_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// object is an object of the namespace default.
func object(api, kind, name string, more steptest.Object) steptest.Object {
	o := steptest.Object{"apiVersion": api, "kind": kind, "metadata": steptest.Object{"namespace": "default", "name": name}}
	for key, v := range more {
		if meta, ok := v.(steptest.Object); ok && key == "metadata" {
			meta["namespace"], meta["name"] = "default", name
		}
		o[key] = v
	}
	return o
}

// pod is a pod of a StatefulSet, "web-0" of web, or of nothing.
func pod(name, node string) steptest.Object {
	meta := steptest.Object{}
	if set, _, ok := strings.Cut(name, "-"); ok {
		meta = steptest.Object{"labels": steptest.Object{"app": set}, "ownerReferences": []any{steptest.Object{"kind": "StatefulSet", "name": set, "controller": true}}}
	}
	return object("v1", "Pod", name, steptest.Object{"metadata": meta, "spec": steptest.Object{"nodeName": node},
		"status": steptest.Object{"phase": "Running", "conditions": []any{steptest.Object{"type": "Ready", "status": "True"}}}})
}

// budget requires a number of pods of a StatefulSet.
func budget(app string, minAvailable int) steptest.Object {
	return object("policy/v1", "PodDisruptionBudget", app, steptest.Object{
		"spec": steptest.Object{"minAvailable": float64(minAvailable), "selector": steptest.Object{"matchLabels": steptest.Object{"app": app}}}})
}

// populated creates a cluster with two pods of web, of which one must be available.
func populated(s *site) {
	s.Must(pipeline.Create, "create")
	s.Kube.Put(object("apps/v1", "StatefulSet", "web", steptest.Object{"spec": steptest.Object{"replicas": 2.0}}))
	nodes := part.Nodes.Hosts(s.Cluster)
	s.Kube.Put(pod("web-0", nodes[len(nodes)-1].Name))
	s.Kube.Put(pod("web-1", nodes[max(len(nodes)-2, 0)].Name))
	s.Kube.Put(budget("web", 1))
	s.Drain = plan.Drain{Requested: true}
}

// cordons lists the nodes that are cordoned, and those that record a drain.
func (s *site) cordons() (cordoned, drained []string) {
	for _, h := range part.Nodes.Hosts(s.Cluster) {
		o := s.Kube.Object("v1", "Node", "", h.Name)
		spec, _ := o["spec"].(map[string]any)
		meta, _ := o["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		if spec["unschedulable"] == true {
			cordoned = append(cordoned, h.Name)
		}
		if annotations["kubexm.mensylisir.io/before-drain"] != nil {
			drained = append(drained, h.Name)
		}
	}
	return cordoned, drained
}

// settled checks that no drain is left: nodes are schedulable except some, all pods run, and
// nothing else of the hosts changed.
func (s *site) settled(when string, made conntest.Snapshot, cordoned ...string) {
	s.t.Helper()
	if got, drained := s.cordons(); !slices.Equal(got, cordoned) || len(drained) > 0 {
		s.t.Errorf("%s: cordoned %q, want %q; drained %q", when, got, cordoned, drained)
	}
	if waiting := s.Kube.Pods(""); len(waiting) > 0 {
		s.t.Errorf("%s: Pending %q", when, waiting)
	}
	s.Same(when, made, s.withoutPods())
}

// withoutPods is the state of the hosts without the pods, which drains move.
func (s *site) withoutPods() conntest.Snapshot {
	return slices.DeleteFunc(s.State(false), func(l string) bool { return strings.Contains(l, "/Pod.core") })
}

// emptyRestarts lists the nodes whose parts restart, and reports a restart on one that has pods
// or is schedulable.
func (s *site) emptyRestarts() *[]string {
	var all []string
	var mu sync.Mutex
	s.OnCommand = func(host, _ string, c connector.Cmd, _ []byte) {
		if c.Verb != connector.VerbUnitRestart {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, strings.TrimSuffix(c.Args()[0], ".service")+" on "+host)
		if cordoned, _ := s.cordons(); len(s.Kube.Pods(host)) > 0 || !slices.Contains(cordoned, host) {
			s.t.Errorf("%s restarts on %s, which has %q; cordoned are %q", c.Args()[0], host, s.Kube.Pods(host), cordoned)
		}
	}
	return &all
}

// TestRestartOnDrainedNodes: every node has no pod when its parts restart, one at a time, and
// takes pods again afterwards. Also a master that is a worker, and the only node.
func TestRestartOnDrainedNodes(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string][]string{"site": {"m1", "w1", "w2"}, "masters-stacked": {"m1", "m2", "m3", "w1"}, "single": {"node1"}} {
		each(t, []string{name}, func(s *site) {
			populated(s)
			if name == "single" { // nothing else takes its pods
				s.Kube.Drop("policy/v1", "PodDisruptionBudget", "default", "web")
			}
			made := s.withoutPods()
			for _, p := range []pipe{pipeline.RestartNodes, pipeline.RestartRuntime, pipeline.RestartAll} {
				got := s.emptyRestarts()
				s.Must(p, p().Name)
				s.OnCommand = nil
				var want []string
				for _, n := range nodes {
					want = append(want, map[string][]string{"restart-nodes": {"kubelet on " + n}, "restart-runtime": {"containerd on " + n}, "restart-all": {"containerd on " + n, "kubelet on " + n}}[p().Name]...)
				}
				if !slices.Equal(*got, want) {
					s.t.Errorf("%s: %q, want %q", p().Name, *got, want)
				}
				s.settled(p().Name, made)
			}
			s.Drain = plan.Drain{}
			s.Must(pipeline.Create, "create afterwards")
			if ran := s.ran(); len(ran) > 0 {
				s.t.Errorf("a creation afterwards ran %q", ran)
			}
		})
	}
}

// TestDrainedBatch: the nodes of a batch are drained together, and masters are not part of it.
func TestDrainedBatch(t *testing.T) {
	t.Parallel()
	each(t, []string{"site"}, func(s *site) {
		populated(s)
		s.Kube.Drop("policy/v1", "PodDisruptionBudget", "default", "web")
		made := s.withoutPods()
		s.Batch = plan.Batch{Size: 2}
		most := 0
		s.OnCommand = func(string, string, connector.Cmd, []byte) {
			cordoned, _ := s.cordons()
			most = max(most, len(cordoned))
		}
		s.Parallel = 1 // the hook of one command at a time
		s.Must(pipeline.RestartNodes, "restart")
		s.OnCommand = nil
		if most != 2 {
			s.t.Errorf("%d nodes were cordoned at a time", most)
		}
		s.settled("a batch of two", made)
	})
}

// TestDrainIsRehearsed: a budget that allows nothing, and a pod without a controller, are named
// before anything changes; the operation has not begun.
func TestDrainIsRehearsed(t *testing.T) {
	t.Parallel()
	each(t, []string{"site"}, func(s *site) {
		populated(s)
		s.Kube.Put(budget("web", 2))
		s.Kube.Put(pod("bare", "w1"))
		made := s.State(true)
		got := s.stops()
		err := s.Run(pipeline.RestartAll, nil)
		s.OnCommand = nil
		found, failed := steps.Split(err)
		var all []string
		for _, f := range found {
			all = append(all, f.Host+" "+f.What)
		}
		text := strings.Join(all, "\n")
		for _, want := range []string{
			"w1 pod default/bare (no controller): nothing starts it again",
			"w1 pod default/web-1 (StatefulSet web): its eviction is refused: PodDisruptionBudget web allows no disruption",
			"w2 pod default/web-0 (StatefulSet web): its eviction is refused: PodDisruptionBudget web",
		} {
			if !strings.Contains(text, want) {
				s.t.Errorf("missing %q in %s", want, text)
			}
		}
		if len(found) != 3 || len(failed) > 0 || len(*got) > 0 || len(s.ran()) > 0 {
			s.t.Errorf("%d findings, %v; stopped %q, ran %q", len(found), failed, *got, s.ran())
		}
		s.Same("a refused restart changes nothing", made, s.State(true))
		s.Drain.Force = true
		s.Must(pipeline.RestartNodes, "by force")
		if left := slices.Concat(s.Kube.Pods("m1"), s.Kube.Pods("w1"), s.Kube.Pods("w2")); len(left) != 2 || slices.Contains(left, "default/bare") {
			s.t.Errorf("pods: %q", left)
		}
	})
}

// TestDrainIsBlockedLater: a budget that allows nothing any more ends the run after its
// timeout. The error names it, the node is schedulable again, and no pod was deleted. Once
// the budget allows it, the same command does all of it.
func TestDrainIsBlockedLater(t *testing.T) {
	t.Parallel()
	each(t, []string{"site"}, func(s *site) {
		populated(s)
		made := s.withoutPods()
		got := s.stops()
		heard := s.OnCommand
		s.OnCommand = func(host, step string, c connector.Cmd, in []byte) {
			if heard(host, step, c, in); c.Verb == connector.VerbUnitRestart && host == "w1" {
				s.Kube.Put(budget("web", 2))
			}
		}
		err := s.Run(pipeline.RestartNodes, nil)
		s.OnCommand = nil
		if err == nil || !strings.Contains(err.Error(), "kubernetes.drain-node[2/w2]") || !strings.Contains(err.Error(), "node w2 was not drained within 10m0s") || !strings.Contains(err.Error(), "PodDisruptionBudget web allows no disruption") {
			s.t.Errorf("%v", err)
		}
		if strings.Join(*got, " ") != "kubelet.service on m1 kubelet.service on w1" {
			s.t.Errorf("stopped %q", *got)
		}
		if !slices.ContainsFunc(s.Events, func(e engine.Event) bool {
			return e.Outcome == engine.Waiting && strings.Contains(e.Reason, "drain of node w2") && strings.Contains(e.Reason, "PodDisruptionBudget web")
		}) {
			s.t.Error("nobody said what was waited for")
		}
		if cordoned, drained := s.cordons(); len(cordoned)+len(drained) > 0 || len(s.Kube.Pods("w2")) == 0 {
			s.t.Errorf("cordoned %q, drained %q; on w2 %q", cordoned, drained, s.Kube.Pods("w2"))
		}
		s.Kube.Put(budget("web", 1))
		s.Must(pipeline.RestartNodes, "restart when the budget allows it")
		s.settled("a restart that was blocked before", made)
	})
}

// TestDrainedNodeFails: a node whose restart fails is named, and takes pods again.
func TestDrainedNodeFails(t *testing.T) {
	t.Parallel()
	each(t, []string{"site"}, func(s *site) {
		populated(s)
		s.Batch = plan.Batch{Size: 2}
		s.Kube.Put(budget("web", 0))
		made := s.withoutPods()
		broken := true
		s.Sims["w1"].Handle(func(c connector.Cmd) bool { return broken && c.Verb == connector.VerbUnitRestart }, func(connector.Cmd, []byte) (connector.Result, bool) {
			return connector.Result{Exit: 1, Stderr: []byte("Job for kubelet.service failed\n")}, true
		})
		err := s.Run(pipeline.RestartNodes, nil)
		if err == nil || !strings.Contains(err.Error(), "kubernetes.restart-kubelet[1/w1] on w1") {
			s.t.Errorf("%v", err)
		}
		if cordoned, drained := s.cordons(); len(cordoned)+len(drained) > 0 {
			s.t.Errorf("cordoned %q, drained %q", cordoned, drained)
		}
		broken = false
		s.Must(pipeline.RestartNodes, "the same again")
		s.settled("a restart that failed before", made)
	})
}

// TestDrainThatIsCutOff at every n-th command, by the loss of the lead or of a worker: the same
// command ends where one ends that nothing cut. A node that was cordoned before stays so.
func TestDrainThatIsCutOff(t *testing.T) {
	t.Parallel()
	each(t, []string{"site"}, func(s *site) {
		populated(s)
		s.Kube.Put(mergedSpec(s.Kube.Object("v1", "Node", "", "w2"), "unschedulable", true))
		s.Must(pipeline.RestartNodes, "restart") // the simulated cluster taints the node
		made := s.withoutPods()
		if cordoned, _ := s.cordons(); !slices.Equal(cordoned, []string{"w2"}) {
			s.t.Fatalf("cordoned: %q", cordoned)
		}
		every := 5
		if testing.Short() {
			every *= 3
		}
		for _, hosts := range [][]string{{"m1"}, {"w1"}, {"m1", "w1", "w2"}} {
			breaks := 0
			for at := 2; ; at += every {
				for _, h := range hosts {
					s.Sims[h].Break(conntest.Fault{At: at, Stay: true, After: at%2 == 0})
				}
				err := s.Run(pipeline.RestartNodes, nil)
				for _, h := range hosts {
					s.Sims[h].Mend()
				}
				if err == nil {
					break
				}
				breaks++
				s.Must(pipeline.RestartNodes, "the same again")
				s.settled("a restart that was cut off", made, "w2")
			}
			if breaks == 0 {
				s.t.Errorf("%q were never lost", hosts)
			}
		}
	})
}

func mergedSpec(o steptest.Object, key string, value any) steptest.Object {
	spec, ok := o["spec"].(steptest.Object)
	if !ok {
		spec = steptest.Object{}
	}
	spec[key] = value
	o["spec"] = spec
	return o
}

// TestDrainThatIsResumed: --resume continues after the nodes that are complete, and drains the
// others again.
func TestDrainThatIsResumed(t *testing.T) {
	t.Parallel()
	each(t, []string{"site"}, func(s *site) {
		populated(s)
		made := s.withoutPods()
		err := s.Run(pipeline.RestartRuntime, func(n *plan.Node) {
			if strings.HasSuffix(n.ID, "containerd.restart[1/w1]") {
				n.Step = failing{n.Step, true}
			}
		})
		if !errors.Is(err, errInjected) {
			s.t.Fatal(err)
		}
		done := map[string]bool{}
		for _, e := range s.Events { // the journal
			at := e.Host
			if e.PlanHost != "" {
				at = e.PlanHost
			}
			done[engine.Key(e.Node, at)] = e.Outcome == engine.Ran
		}
		s.Passed = func(node, host string) bool { return done[engine.Key(node, host)] }
		got := s.emptyRestarts()
		s.Must(pipeline.RestartRuntime, "restart that goes on")
		s.OnCommand, s.Passed = nil, nil
		if strings.Join(*got, " ") != "containerd on w1 containerd on w2" {
			s.t.Errorf("restarted %q", *got)
		}
		s.settled("a resumed restart", made)
	})
}

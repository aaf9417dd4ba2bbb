package gate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/gate"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func sick(names ...string) func(*steptest.Kube) {
	return func(k *steptest.Kube) { k.Unhealthy = names }
}

// TestGates holds every gate to the laws of waits.
func TestGates(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	node := c.Spec.Hosts[0]
	learns := func(k *steptest.Kube) { k.Learner, k.Alarm = "node1", "memberID:1 alarm:NOSPACE " }
	for name, row := range map[string]struct {
		step      steps.Step
		ill, well func(*steptest.Kube)
		says      []string
	}{
		"api server":           {gate.API(c), sick("kube-apiserver-node1"), sick(), []string{"the API server of node1 is not ready: ", "was refused"}},
		"store, member away":   {gate.Store(c), sick("etcd-node1"), sick(), []string{"the member on node1 does not answer"}},
		"store, learner":       {gate.Store(c), learns, func(k *steptest.Kube) { k.Learner, k.Alarm = "", "" }, []string{"member node1 is a learner"}},
		"remaining store":      {gate.RemainingStore(c, nil), sick("etcd-node1"), sick(), []string{"the member on node1 does not answer"}},
		"store, alarm":         {gate.Store(c), func(k *steptest.Kube) { k.Alarm = "memberID:1 alarm:NOSPACE" }, func(k *steptest.Kube) { k.Alarm = "" }, []string{"etcd reports: memberID:1 alarm:NOSPACE"}},
		"defragment, member":   {gate.StoreToDefragment(c), sick("etcd-node1"), sick(), []string{"the member on node1 does not answer"}},
		"defragment, alarm":    {gate.StoreToDefragment(c), func(k *steptest.Kube) { k.Alarm = "memberID:1 alarm:CORRUPT" }, func(k *steptest.Kube) { k.Alarm = "memberID:1 alarm:NOSPACE" }, []string{"etcd reports: memberID:1 alarm:CORRUPT"}},
		"node, a pod":          {gate.Node(node, "v1.34.10"), sick("kube-proxy-node1"), sick(), []string{"pod kube-system/kube-proxy-node1 on node1 is not ready"}},
		"node, an old kubelet": {gate.Node(node, "v1.34.10"), func(k *steptest.Kube) { k.Kubelets = map[string]string{"node1": "v1.33.1"} }, func(k *steptest.Kube) { k.Kubelets = nil }, []string{"the kubelet of node1 is v1.33.1, not v1.34.10"}},
		"node, no report yet":  {gate.Node(node, "v1.34.10"), func(k *steptest.Kube) { k.Silent = map[string]bool{"node1": true} }, func(k *steptest.Kube) { k.Silent = nil }, []string{"the kubelet of node1 has not reported since it started"}},
		"rolled":               {gate.RolledOut("Deployment", "kube-system", "coredns"), sick("coredns"), sick(), []string{"Deployment/coredns in namespace kube-system: 0 of 2 ready"}},
		"soak":                 {gate.Soak(c, time.Minute), sick("node1"), sick(), []string{"node node1 is not Ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				steptest.Waits(t, steptest.Case{Cluster: c}, row.step, row.ill, row.well, row.says...)
			})
		})
	}
}

// TestStoreHoldsFor15Seconds: one good look is none. A store that falters is waited for
// until it has not done so for 15 seconds.
func TestStoreHoldsFor15Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := steptest.Cluster(t, steptest.Small)
		var k *steptest.Kube
		kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) { k = steptest.ExistingKube(c, s) }}
		s := kase.Sim(t)
		step := gate.Store(c)
		h := kase.NewHost(t, s, step)
		begin := time.Now()
		if v, err := step.Precheck(t.Context(), h); v != steps.Done || err != nil || time.Since(begin) < 15*time.Second {
			t.Errorf("a healthy store: %v, %v after %s", v, err, time.Since(begin))
		}
		begin, h.DryRun = time.Now(), true
		if v, err := step.Precheck(t.Context(), h); v != steps.Done || err != nil || time.Since(begin) > 0 {
			t.Errorf("a healthy store in a dry run: %v, %v after %s", v, err, time.Since(begin))
		}
		h.DryRun = false
		go func() {
			for range 3 { // 10 seconds well, 2 not
				time.Sleep(10 * time.Second)
				k.Change(func(k *steptest.Kube) { k.Alarm = "NOSPACE" })
				time.Sleep(3 * time.Second)
				k.Change(func(k *steptest.Kube) { k.Alarm = "" })
			}
		}()
		begin = time.Now()
		if err := step.Run(t.Context(), h); err != nil || time.Since(begin) < 39*time.Second+15*time.Second {
			t.Errorf("a store that falters for 39 s: %v after %s", err, time.Since(begin))
		}
	})
}

// TestWorkloads: of nothing less is available than before, and what was scaled down on
// purpose is not waited for.
func TestWorkloads(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	for name, row := range map[string]struct {
		ill, well func(*steptest.Kube)
		says      string
	}{
		"a deployment": {sick("web"), sick(), "Deployment default/web: 0 available, 3 before"},
		"a daemon set": {sick("kube-proxy-node1"), sick(), "DaemonSet kube-system/kube-proxy: 0 available, 1 before"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kase := steptest.Case{Cluster: c, Workdir: t.TempDir(), ChangeCluster: objects}
				note(t, kase)
				steptest.Waits(t, kase, gate.Workloads(), row.ill, row.well, row.says)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		kase := steptest.Case{Cluster: c, Workdir: t.TempDir()}
		k, s := note(t, kase)
		step := gate.Workloads()
		look := func(when string, want steps.Verdict) {
			t.Helper()
			if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); v != want || err != nil {
				t.Errorf("%s: %v, %v", when, v, err)
			}
		}
		look("as before", steps.Done)
		k.Put(deployment("web", 1))
		look("scaled down", steps.Done)
		k.Put(deployment("web", 5))
		look("scaled up", steps.Done)
		k.Put(slice("web", true, false))
		look("a Service with fewer endpoints", steps.Todo)
		k.Put(slice("web", true, true, true))
		k.Put(budget("web", 0, 3, 2))
		look("a budget that allows nothing any more", steps.Todo)
		k.Put(budget("web", 1, 3, 2))
		k.Drop("apps/v1", "Deployment", "default", "web")
		look("a Deployment that is gone", steps.Todo)
	})
}

// TestRecordOfWorkloadsIsPreserved: a note of an operation that has not ended is not written anew, and its
// inverse removes it.
func TestRecordOfWorkloadsIsPreserved(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c, Workdir: t.TempDir()}
	k, s := note(t, kase)
	file := filepath.Join(kase.Workdir, "workloads-before.json")
	before, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(before), `"Service default/web"`) {
		t.Fatalf("%v %s", err, before)
	}
	k.Change(sick("web"))
	step := gate.NoteWorkloads()
	if v, err := step.Precheck(t.Context(), kase.NewHost(t, s, step)); v != steps.Done || err != nil {
		t.Errorf("a second note: %v, %v", v, err)
	}
	forget := gate.ForgetWorkloads()
	for _, want := range []steps.Verdict{steps.Todo, steps.Done} {
		h := kase.NewHost(t, s, forget)
		if v, err := forget.Precheck(t.Context(), h); v != want || err != nil {
			t.Errorf("forget: %v, %v", v, err)
		}
		if err := forget.Run(t.Context(), h); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the note is still there")
	}
	// Without it nothing is as before.
	wait := gate.Workloads()
	if v, err := wait.Precheck(t.Context(), kase.NewHost(t, s, wait)); v != steps.Todo || err != nil {
		t.Errorf("without a note: %v, %v", v, err)
	}
}

// TestAnAPIServerThatIsNotReady: the checks that fail are named.
func TestAnAPIServerThatIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := steptest.Cluster(t, steptest.Small)
		kase := steptest.Case{Cluster: c, Before: steptest.ExistingCluster(c)}
		s := kase.Sim(t)
		s.HandleProgram("kubectl", steptest.Fails("Error from server (InternalError): an error on the server (\"[+]ping ok\\n[-]etcd failed: reason withheld\\n[-]poststarthook/rbac failed: reason withheld\\nreadyz check failed\") has prevented the request from succeeding\n"))
		step := gate.API(c)
		err := step.Run(t.Context(), kase.NewHost(t, s, step))
		if err == nil || !strings.Contains(err.Error(), "not ready: etcd failed: reason withheld, poststarthook/rbac failed: reason withheld") {
			t.Error(err)
		}
	})
}

func note(t *testing.T, kase steptest.Case) (*steptest.Kube, *conntest.Sim) {
	t.Helper()
	var k *steptest.Kube
	c := kase.Cluster
	kase.Before = func(s *conntest.Sim) { k = steptest.ExistingKube(c, s) }
	s := kase.Sim(t)
	objects(k)
	step := gate.NoteWorkloads()
	h := kase.NewHost(t, s, step)
	if v, err := step.Precheck(t.Context(), h); v != steps.Todo || err != nil {
		t.Fatalf("%v, %v", v, err)
	}
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	return k, s
}

func objects(k *steptest.Kube) {
	k.Put(deployment("web", 3))
	k.Put(slice("web", true, true))
	k.Put(budget("web", 1, 3, 2))
}

func deployment(name string, replicas int) steptest.Object {
	return steptest.Object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": steptest.Object{"name": name, "namespace": "default"}, "spec": steptest.Object{"replicas": float64(replicas)}}
}

func slice(service string, ready ...bool) steptest.Object {
	var all []any
	for _, r := range ready {
		all = append(all, steptest.Object{"conditions": steptest.Object{"ready": r}})
	}
	return steptest.Object{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "endpoints": all,
		"metadata": steptest.Object{"name": service + "-x", "namespace": "default", "labels": steptest.Object{"kubernetes.io/service-name": service}}}
}

func budget(name string, allowed, pods, healthy int) steptest.Object {
	return steptest.Object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": steptest.Object{"name": name, "namespace": "default"},
		"status": steptest.Object{"disruptionsAllowed": float64(allowed), "expectedPods": float64(pods), "desiredHealthy": float64(healthy)}}
}

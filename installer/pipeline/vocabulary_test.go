package pipeline_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/gate"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
	"github.com/mensylisir/kubexm/versions"
)

// An upgrade over several minors, as a person would write it: what follows has to fit a
// screen. Its steps are stand-ins, its gates and the words that join them are the product's.

func upgrade(c *manifest.Cluster, w versions.UpgradePath, by plan.Batch) plan.Pipeline {
	p := plan.Pipeline{Name: "upgrade", Rolling: true, Modules: []plan.Module{module("before", note(c)), module("preload", preload(w))}}
	for _, hop := range w.Steps {
		p.Modules = append(p.Modules, module("store", storeTo(c, hop)), module("control-plane", controlPlaneTo(c, hop)), module("parts", partsTo(hop)))
		if hop.Nodes {
			p.Modules = append(p.Modules, module("nodes", nodesTo(c, hop, by)))
		}
	}
	return p
}

func note(*manifest.Cluster) plan.Task {
	return task("note", func(s plan.Scope) plan.Fragment { return plan.On(lead(s), gate.NoteWorkloads(), stand("backup.take")) })
}

func preload(w versions.UpgradePath) plan.Task {
	return task("stage", func(s plan.Scope) plan.Fragment {
		var all []plan.Fragment
		for _, hop := range w.Steps {
			all = append(all, plan.InSet(hop.Set, plan.On(s.Hosts(), stand("release.stage", "kubeadm", "kubelet"))))
		}
		return plan.Seq(all...)
	})
}

func storeTo(c *manifest.Cluster, hop versions.UpgradeStep) plan.Task {
	return task("etcd", func(s plan.Scope) plan.Fragment {
		return plan.InSet(hop.Set, plan.Roll(s.Role(manifest.RoleMaster), func(h manifest.Host) plan.Fragment {
			return plan.On([]manifest.Host{h}, gate.Store(c), stand("etcd.switch"), gate.API(c))
		}))
	})
}

func controlPlaneTo(c *manifest.Cluster, hop versions.UpgradeStep) plan.Task {
	return task("masters", func(s plan.Scope) plan.Fragment {
		masters := s.Role(manifest.RoleMaster)
		return plan.InSet(hop.Set, plan.Roll(masters, func(h manifest.Host) plan.Fragment {
			return plan.Seq(
				plan.QualifyIDs("before", plan.On(masters, gate.API(c))),
				plan.On([]manifest.Host{h}, gate.Store(c), stand("kubeadm.switch", "kubeadm"), stand("kubeadm.upgrade"), gate.API(c)))
		}))
	})
}

func partsTo(hop versions.UpgradeStep) plan.Task {
	return task("parts", func(s plan.Scope) plan.Fragment {
		return plan.InSet(hop.Set, plan.On(lead(s), stand("network.upgrade"), gate.RolledOut("DaemonSet", "kube-system", "kube-proxy"), gate.RolledOut("Deployment", "kube-system", "coredns")))
	})
}

func nodesTo(c *manifest.Cluster, hop versions.UpgradeStep, by plan.Batch) plan.Task {
	return task("nodes", func(s plan.Scope) plan.Fragment {
		visit := func(h manifest.Host) plan.Fragment {
			here := []manifest.Host{h}
			return plan.GuardedFor(h,
				plan.Seq(plan.On(lead(s), stand("node.drain")), plan.On(here, stand("kubelet.switch", "kubelet")), plan.On(lead(s), gate.Node(h, hop.Set), stand("node.uncordon"))),
				plan.Seq(plan.On(here, stand("kubelet.relink")), plan.On(lead(s), stand("node.uncordon"))))
		}
		whole := func() plan.Fragment { return plan.On(lead(s), gate.Workloads()) }
		masters := plan.Roll(s.Role(manifest.RoleMaster), func(h manifest.Host) plan.Fragment { return plan.Seq(visit(h), whole()) })
		workers := plan.Batches(s.Role(manifest.RoleWorker), by,
			func(hs []manifest.Host) plan.Fragment { return plan.Seq(plan.Each(hs, visit), whole()) },
			func(n int) plan.Fragment {
				if n > 1 {
					return plan.Fragment{}
				}
				return plan.On(lead(s), gate.Soak(c, 10*time.Minute)) // after the canary
			})
		return plan.InSet(hop.Set, plan.Seq(masters, workers))
	})
}

// What follows stands in for what is not built yet.

func lead(s plan.Scope) []manifest.Host { return s.Lead() }

func task(name string, f func(plan.Scope) plan.Fragment) plan.Task {
	return plan.Task{Name: name, Plan: f}
}

func module(name string, t plan.Task) plan.Module {
	return plan.Module{Name: name, Plan: plan.Sequential(t)}
}

func stand(name string, binaries ...string) steps.Step {
	d := &op.Do{M: steps.Meta{Name: name, Timeout: time.Minute}, Done: func(context.Context, *steps.Host) (bool, error) { return true, nil }}
	for _, b := range binaries {
		d.M.Needs = append(d.M.Needs, manifest.Need{Kind: manifest.Binary, Name: b})
	}
	return d
}

const sevenHosts = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: m1, address: 192.0.2.11}
    - {name: m2, address: 192.0.2.12}
    - {name: m3, address: 192.0.2.13}
    - {name: w1, address: 192.0.2.21}
    - {name: w2, address: 192.0.2.22}
    - {name: w3, address: 192.0.2.23}
    - {name: w4, address: 192.0.2.24}
  ssh: {user: root, password: secret}
  roleGroups: {master: ['m[1:3]'], worker: ['w[1:4]'], registry: [m1]}
  kubernetes: {version: v1.34.0}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`

// TestAnUpgradeCanBeSaid: the plan of the upgrade above over two minors is the golden one,
// and keeps what an upgrade promises.
func TestAnUpgradeCanBeSaid(t *testing.T) {
	c := steptest.Cluster(t, sevenHosts)
	lock := &manifest.Lock{Sets: []manifest.Set{{Name: "v1.32.2"}, {Name: "v1.33.1"}, {Name: "v1.34.0"}}}
	w, err := versions.FindUpgradePath(lock, "v1.32.2", "v1.34.0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := plan.Build(upgrade(c, w, plan.Batch{First: 1, Size: 2}), plan.Scope{Want: c, Set: "v1.34.0"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "upgrade.plan")
	if *update {
		if err := os.WriteFile(path, []byte(g.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), g.String()); d != "" {
		t.Errorf("the plan is another (-want +got):\n%s", d)
	}
	at := func(last bool, step, part string) (found int) {
		found = -1
		for i, n := range g.Nodes {
			if n.Step.Meta().Name == step && strings.Contains(n.ID, part) && (last || found < 0) {
				found = i
			}
		}
		if found < 0 {
			t.Fatalf("no %s of %s", step, part)
		}
		return found
	}
	if at(true, "release.stage", "v1.34.0") > at(false, "node.drain", "") {
		t.Error("a node is drained before all is staged")
	}
	if at(true, "kubeadm.upgrade", "v1.34.0") > at(false, "kubelet.switch", "") {
		t.Error("a kubelet is newer than an API server")
	}
	drained := map[string]int{}
	for _, n := range g.Nodes {
		if n.Step.Meta().Name != "kubelet.switch" {
			continue
		}
		drained[n.Hosts[0].Name]++
		if n.Set != "v1.34.0" || len(n.Guards) != 1 || len(n.Guards[0].UndoNodes(n.Hosts[0].Name)) != 2 {
			t.Errorf("%s is of set %s, with %d ways back", n.ID, n.Set, len(n.Guards))
		}
	}
	for _, h := range c.Spec.Hosts {
		if drained[h.Name] != 1 {
			t.Errorf("%s is drained %d times", h.Name, drained[h.Name])
		}
	}
	for _, line := range strings.Split(g.String(), "\n") {
		if strings.Contains(line, "kubelet.relink") && strings.Contains(line, "[v1.34.0/w") && strings.HasSuffix(line, "on m1") {
			t.Errorf("a master goes back for a worker: %s", line)
		}
	}
	if sets := g.Sets("v1.34.0"); !slices.Equal(sets, []string{"v1.33.1", "v1.34.0"}) {
		t.Errorf("sets %q", sets)
	}
	if err := g.CheckBundle(lock, "v1.34.0"); err == nil || !strings.Contains(err.Error(), "kubeadm of v1.33.1 for linux/amd64") {
		t.Error(err)
	}
}

package installer_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// imagesOn gives the pinned images of a node.
func (s *site) imagesOn(node string) []string {
	var out []string
	for _, p := range s.Sims[node].Below(steptest.ImageDir) {
		if f := strings.Fields(s.Sims[node].Read(p)); len(f) == 3 && f[2] == "pinned" {
			out = append(out, f[0])
		}
	}
	slices.Sort(out)
	return out
}

// pulls lists the commands that ask a registry for anything, by host.
func (s *site) pulls() []string {
	var out []string
	for host, sim := range s.Sims {
		for _, c := range sim.Calls() {
			if slices.Contains(c.Argv, "pull") {
				out = append(out, host+": "+strings.Join(c.Argv, " "))
			}
		}
	}
	return out
}

// TestASiteWithoutARegistry: every node has all that the bundle brings, nothing is
// pulled, and a node or an image that comes later gets there the same way.
func TestASiteWithoutARegistry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "no-registry")
		first := s.ofHost("master1")
		s.Must(pipeline.Create, "create")
		for _, ran := range s.ran() {
			if strings.HasPrefix(ran, "registryd.") || strings.HasPrefix(ran, "containerd.preload-images") {
				t.Errorf("%s ran", ran)
			}
		}
		var all, ofWorkers []string
		for _, im := range s.Bundle.Images() {
			all = append(all, im.Reference)
			if !slices.ContainsFunc([]string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}, func(n string) bool { return slices.Contains(im.Names, n) }) {
				ofWorkers = append(ofWorkers, im.Reference)
			}
		}
		slices.Sort(all)
		slices.Sort(ofWorkers)
		if !slices.Contains(ofWorkers, "quay.example/site/tools:1.0") || !slices.Contains(ofWorkers, "registry.k8s.io/pause:1.0") || len(all) != len(ofWorkers)+4 {
			t.Fatalf("the bundle has %v", all)
		}
		if got := s.imagesOn("master1"); !slices.Equal(got, all) {
			t.Errorf("the master has %v", got)
		}
		if got := s.imagesOn("worker2"); !slices.Equal(got, ofWorkers) {
			t.Errorf("a worker has %v", got)
		}
		const certs = "/etc/containerd/certs.d/"
		if hosts := s.Sims["worker1"].Read(certs + "docker.io/hosts.toml"); !strings.Contains(hosts, "mirror.site.example") {
			t.Errorf("the config's own mirror: %q", hosts)
		}
		for _, other := range []string{"_default", "registry.k8s.io", "dockerhub.kubexm.local"} {
			if hosts := s.Sims["worker1"].Read(certs + other + "/hosts.toml"); hosts != "" {
				t.Errorf("%s: %s", other, hosts)
			}
		}

		s.Edit(with(t, configOf(t, "no-registry"), "    - {name: worker2, address: 192.0.2.22}\n", "    - {name: worker2, address: 192.0.2.22}\n    - {name: worker3, address: 192.0.2.23}\n", "worker[1:2]", "worker[1:3]"))
		s.Must(pipeline.Create, "a worker more")
		if got := s.imagesOn("worker3"); !slices.Equal(got, ofWorkers) {
			t.Errorf("the new worker has %v", got)
		}
		if s.Kube.Object("v1", "Node", "", "worker3") == nil {
			t.Error("worker3 has not joined")
		}
		for _, ran := range s.ran() {
			if strings.HasPrefix(ran, "containerd.import-images") && !strings.HasSuffix(ran, "worker3") {
				t.Errorf("%s ran", ran)
			}
		}
		if pulled := s.pulls(); len(pulled) > 0 {
			t.Errorf("pulled %v", pulled)
		}
		s.Must(pipeline.Delete, "delete")
		s.Same("a deletion gives back what was there", first, s.ofHost("master1"))
	})
}

// TestAClusterStaysWithoutARegistry: what is made without one gets none later, and
// what is made with one keeps it.
func TestAClusterStaysWithoutARegistry(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		cluster string
		change  []string
	}{
		"one on a node":     {"no-registry", []string{"roleGroups: {master: [master1]", "roleGroups: {registry: [worker1], master: [master1]"}},
		"one on a new host": {"no-registry", []string{"roleGroups: {master: [master1]", "roleGroups: {registry: [r1], master: [master1]", "  ssh:", "    - {name: r1, address: 192.0.2.31}\n  ssh:"}},
		"one that exists":   {"no-registry", []string{"network:", "registry: {type: external, privateRegistry: harbor.site.example}\n  network:"}},
		"none":              {"single", []string{", registry: [node1]", "", "network:", "registry: {type: none}\n  network:"}},
		"another one":       {"registry-existing", []string{"harbor.site.example:8443", "harbor.site.example:9443"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, x.cluster)
				s.Must(pipeline.Create, "create")
				s.Edit(with(t, configOf(t, x.cluster), x.change...))
				if said := s.refused("another type"); !strings.Contains(said, "spec.registry.") {
					t.Errorf("said %s", said)
				}
			})
		})
	}
}

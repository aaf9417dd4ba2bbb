package e2e

import (
	"strings"
	"testing"
)

// TestNoRegistry makes a cluster whose nodes get their images from the archive, through
// their SSH connections, and adds a worker to it. Then it deletes all.
func TestNoRegistry(t *testing.T) {
	s, config := newScenarioSite(t, 4, "no-registry.yaml")
	s.masters = []string{"h1"}
	before := s.inventories(t)
	said(t, s.install(t, config), 0, "create of cluster site: done")
	s.smoke(t)
	s.nothingWasPulled(t, "h1", "h2", "h3")
	said(t, s.install(t, config), 0, "0 steps ran")

	wider := s.write(t, "wider.yaml", strings.NewReplacer("  roleGroups:\n", "    - {name: h4, address: \""+s.Hosts[3].Address+"\"}\n  roleGroups:\n", "[h2, h3]", "[h2, h3, h4]").Replace(s.config))
	said(t, s.install(t, wider), 0, "create of cluster site: done")
	if ready := s.kubectl(t, "get", "node", "h4", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); ready != "True" {
		t.Errorf("the new worker is ready: %s", ready)
	}
	s.nothingWasPulled(t, "h1", "h2", "h3", "h4")
	said(t, s.install(t, wider), 0, "0 steps ran")

	said(t, s.kubexm(t, "delete", "cluster", "-f", wider, "--yes"), 0, "delete of cluster site: done")
	s.nothingLeft(t)
	s.asBefore(t, before)
}

// nothingWasPulled looks at where the images of nodes come from: all are there and
// pinned, and no runtime was ever asked to pull one.
func (s *labSite) nothingWasPulled(t testing.TB, nodes ...string) {
	t.Helper()
	for _, h := range nodes {
		if pulled := s.on(t, h, "journalctl -q -u containerd -o cat | grep 'PullImage ' || true"); pulled != "" {
			t.Errorf("%s pulled:\n%s", h, pulled)
		}
		const list = `ctr --namespace k8s.io images list 'labels."io.cri-containerd.pinned"==pinned'`
		has := s.on(t, h, list)
		for image, want := range map[string]bool{"/pause:": true, "lab.test/labtool:v1.0.0": true, "/kube-proxy:": true, "/kube-apiserver:": h == "h1", "/etcd:": h == "h1"} {
			if strings.Contains(has, image) != want {
				t.Errorf("%s has %s pinned: %t, want %t\n%s", h, image, !want, want, has)
			}
		}
		if again := s.on(t, h, "crictl images -o json | grep -c '\"pinned\": true' || true"); again == "0" {
			t.Errorf("the CRI of %s knows of no pinned image", h)
		}
		s.on(t, h, "! test -e /etc/containerd/certs.d/_default && ! pgrep -x registry")
	}
}

package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestStorage makes a cluster whose pods get volumes from a folder of their node, that measures what pods
// use, and labels its nodes with the features of their hardware.
func TestStorage(t *testing.T) {
	if os.Getenv("KUBEXM_STORAGE") != "openebs" {
		t.Skip("KUBEXM_STORAGE=openebs runs it")
	}
	s, config := newScenarioSite(t, 3, "storage.yaml")
	s.masters = []string{"h1"}
	// On one node the folder is somebody's, with a file in it.
	s.on(t, "h2", "mkdir -m 0755 /mnt/volumes && echo mine > /mnt/volumes/mine")
	before := s.inventories(t)

	without := s.listing(t, "h3")
	plain := strings.ReplaceAll(readText(t, without), ", nodeFeatureDiscovery: {enabled: true}", "")
	plain = strings.Replace(plain, "  storage:\n    openebs: {basePath: /mnt/volumes}\n", "", 1)
	if strings.Contains(plain, "openebs") || strings.Contains(plain, "Discovery") {
		t.Fatal(plain)
	}
	said(t, s.install(t, s.write(t, "plain.yaml", plain)), 0, "create of cluster site: done")
	said(t, s.install(t, without), 0, "create of cluster site: done") // an existing cluster gets both
	said(t, s.install(t, without), 0, "0 steps ran")
	s.smoke(t)
	s.measured(t, "h1", "h2")

	s.kubectl(t, "apply", "-f", "testdata/storage-pods.yaml")
	s.written(t, "h1", "h2")
	said(t, s.kubexm(t, "node", "add", "h3", "--bundle", s.bundle, "--allow-unsigned", "-f", config), 0, "node-add of cluster site: done")
	s.kubectl(t, "scale", "statefulset/writer", "--replicas=3")
	s.written(t, "h1", "h2", "h3")
	s.measured(t, "h1", "h2", "h3")

	// A volume holds its data when its pod ends, and goes with its claim.
	first := s.kubectl(t, "exec", "writer-0", "--", "cat", "/data/boots")
	s.kubectl(t, "delete", "pod", "writer-0")
	s.kubectl(t, "rollout", "status", "statefulset/writer", "--timeout=120s")
	if now := s.kubectl(t, "exec", "writer-0", "--", "cat", "/data/boots"); !strings.HasPrefix(now, first) || now == first {
		t.Errorf("the volume has %q after %q", now, first)
	}
	last := s.kubectl(t, "get", "pod", "writer-2", "-o", "jsonpath={.spec.nodeName}")
	s.kubectl(t, "scale", "statefulset/writer", "--replicas=2")
	s.kubectl(t, "wait", "--for=delete", "pod/writer-2", "--timeout=60s")
	s.kubectl(t, "delete", "pvc", "data-writer-2")
	s.eventually(t, last, "! ls -d /mnt/volumes/pvc-*")

	s.deleted(t, config)
	// In the folder that was there before, the volumes stay.
	if left := s.on(t, "h2", "cd /mnt/volumes && cat mine pvc-*/boots"); !strings.HasPrefix(left, "mine\n") {
		t.Errorf("h2 has %q", left)
	}
	s.on(t, "h2", "rm -r /mnt/volumes/pvc-*")
	s.asBefore(t, before)
}

// measured waits until the cluster has measured nodes and their pods, and knows the nodes' kernels.
func (s *labSite) measured(t *testing.T, nodes ...string) {
	t.Helper()
	s.eventually(t, "h1", "KUBECONFIG=/etc/kubernetes/admin.conf kubectl top pods -n kube-system | grep -q etcd-h1")
	for _, node := range nodes {
		s.eventually(t, "h1", "KUBECONFIG=/etc/kubernetes/admin.conf kubectl top nodes --no-headers | grep -q '^"+node+" .*Mi'")
		s.eventually(t, "h1", "KUBECONFIG=/etc/kubernetes/admin.conf kubectl get node "+node+" --show-labels | grep -q feature.node.kubernetes.io/kernel-version.major=")
	}
}

// written waits until a pod on each of nodes has written to a volume of its own, which only root
// reaches on its node.
func (s *labSite) written(t *testing.T, nodes ...string) {
	t.Helper()
	s.kubectl(t, "rollout", "status", "statefulset/writer", "--timeout=240s")
	for _, node := range nodes {
		if is := s.on(t, node, "stat -c %a /mnt/volumes; cat /mnt/volumes/pvc-*/boots"); !strings.HasPrefix(is, "700\nwriter-") {
			t.Errorf("%s has %q", node, is)
		}
	}
}

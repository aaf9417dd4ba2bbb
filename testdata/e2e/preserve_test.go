package e2e

import "testing"

// TestPreserve makes a cluster whose config preserves its data, deletes it, and makes it
// again of what was left. Then it deletes all.
func TestPreserve(t *testing.T) {
	s, config := newScenarioSite(t, 4, "preserve.yaml")
	s.masters = []string{"h2"}
	before := s.inventories(t)
	said(t, s.install(t, config), 0, "create of cluster site: done")
	s.outlives(t, config)
	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--preserve-data=false", "--yes"), 0, "delete of cluster site: done")
	s.nothingLeft(t)
	s.asBefore(t, before)
}

// outlives has etcd's data and the images outlive a deletion, and the next install
// take them up, each from a machine that knows of no other run.
func (s *labSite) outlives(t testing.TB, config string) {
	t.Helper()
	s.kubectl(t, "create", "configmap", "outlives", "--from-literal=written=before")
	first := s.masters[0]
	account := s.on(t, first, "sha256sum < /etc/kubernetes/pki/sa.key")
	s.folder = t.TempDir()
	r := s.kubexm(t, "delete", "cluster", "--bundle", s.bundle, "--allow-unsigned", "-f", config, "--yes")
	said(t, r, 0, "delete of cluster site: done")
	const master, worker = "/srv/etcd\n/var/lib/containerd\n/var/lib/kubexm", "/var/lib/containerd\n/var/lib/kubexm"
	for host, want := range map[string]string{"h1": "/srv/images\n/var/lib/kubexm", "h2": master, "h3": worker, "h4": worker} {
		got := s.on(t, host, `for p in /etc/containerd /etc/etcd /etc/kubernetes /etc/kubexm /opt/cni /root/.kube /srv/etcd /srv/images /usr/local/bin/kubelet \
/usr/local/bin/containerd /usr/local/bin/registry /var/lib/containerd /var/lib/etcd /var/lib/kubelet /var/lib/kubexm; do ! test -e $p || echo $p; done
ps -eo comm= | grep -E 'kube|etcd|containerd|flannel|registry' || true`)
		if got != want {
			t.Errorf("of %s is left %q, want %q", host, got, want)
		}
	}
	s.folder = ""
	since := map[string]string{}
	for _, h := range s.Hosts {
		since[h.Name] = s.on(t, h.Name, "date +%s")
	}
	r = s.install(t, config)
	said(t, r, 0, "create of cluster site: done")
	if got := s.kubectl(t, "get", "configmap", "outlives", "-o", "jsonpath={.data.written}"); got != "before" {
		t.Errorf("the cluster holds %q", got)
	}
	if got := s.on(t, first, "sha256sum < /etc/kubernetes/pki/sa.key"); got != account {
		t.Error("the key of service accounts is another")
	}
	for _, h := range []string{"h2", "h3", "h4"} {
		if pulled := s.on(t, h, "journalctl -q -u containerd -o cat --since @"+since[h]+" | grep 'PullImage ' || true"); pulled != "" {
			t.Errorf("%s pulled what it had:\n%s", h, pulled)
		}
	}
	if sent := s.on(t, "h1", "journalctl -q -u kubexm-registry-push -o cat --since @"+since["h1"]+" | grep -c '\"PUT ' || true"); sent != "0" {
		t.Errorf("the registry was sent %s things that it had", sent)
	}
	s.smoke(t)
	said(t, s.install(t, config), 0, "0 steps ran")
}

package e2e

import (
	"strings"
	"testing"
)

// TestEtcdHosts is the life of a cluster whose etcd runs on hosts that are no nodes:
// it does without one member, a lost disk is replaced, and all of it goes away.
func TestEtcdHosts(t *testing.T) {
	s, config := newScenarioSite(t, 4, "etcd-hosts.yaml")
	before := s.inventories(t)
	said(t, s.install(t, config), 0, "create of cluster site: done")
	said(t, s.install(t, config), 0, "0 steps ran")

	// Each kind of host runs its own programs and no other's.
	s.on(t, "h1", "pgrep -x kube-apiserver && pgrep -x kubelet && ! pgrep -x etcd && ! test -e /var/lib/etcd/member")
	for _, h := range s.Hosts[1:] {
		s.on(t, h.Name, "pgrep -x etcd && ! pgrep -x kubelet && ! pgrep -x containerd && ! test -e /etc/kubernetes")
	}
	if nodes := s.kubectl(t, "get", "nodes", "-o", "name"); nodes != "node/h1" {
		t.Errorf("the nodes are %q", nodes)
	}
	const ctl = "etcdctl --cacert /etc/etcd/pki/ca.crt --cert /etc/etcd/pki/healthcheck-client.crt --key /etc/etcd/pki/healthcheck-client.key --endpoints https://"
	members := func() string { return s.on(t, "h2", ctl+s.Hosts[1].Address+":2379 member list") }
	first := members()
	if strings.Count(first, "started") != 3 {
		t.Errorf("the members are\n%s", first)
	}

	// One member less: the API server writes on. It may have led.
	s.on(t, "h4", "systemctl kill -s KILL etcd; systemctl stop etcd")
	s.eventually(t, "h1", atHome+kubectl+"--request-timeout=20s create configmap without-h4 --from-literal=written=yes")
	s.on(t, "h4", "systemctl start etcd")
	s.eventually(t, "h4", ctl+s.Hosts[3].Address+":2379 endpoint health")

	// A member whose disk is lost is replaced by an install.
	s.on(t, "h3", "systemctl stop etcd; rm -rf /srv/etcd")
	said(t, s.install(t, config), 0, "create of cluster site: done")
	if after := members(); strings.Count(after, "started") != 3 || after == first {
		t.Errorf("the members are\n%s\nbefore\n%s", after, first)
	}
	s.eventually(t, "h3", ctl+s.Hosts[2].Address+":2379 endpoint health --cluster")
	if got := s.kubectl(t, "get", "configmap", "without-h4", "-o", "jsonpath={.data.written}"); got != "yes" {
		t.Errorf("what was written is %q", got)
	}

	said(t, s.kubexm(t, "delete", "cluster", "-f", config, "--yes"), 0, "delete of cluster site: done")
	s.nothingLeft(t)
	s.asBefore(t, before)
}

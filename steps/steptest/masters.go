package steptest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// stacked reports whether kubeadm runs etcd on the control plane nodes.
func (k *Kube) stacked() bool { return k.cluster.Spec.Etcd.Type == "kubeadm" }

// storeReady returns the reason why kubeadm would reject etcd on a host, or "".
func (k *Kube) storeReady(c call) string {
	if k.cluster.Spec.Etcd.Type != "kubexm" {
		return ""
	}
	for _, p := range []string{"ca.crt", "client.crt", "client.key"} {
		if c.sim.Read("/etc/kubernetes/etcd/"+p) == "" {
			return "open /etc/kubernetes/etcd/" + p + ": no such file or directory"
		}
	}
	if !k.agreed() {
		return "couldn't load external etcd's server certificate: connection refused"
	}
	return ""
}

// shared returns the key files that are the same on all control plane nodes.
func (k *Kube) shared() []string {
	out := []string{"ca.crt", "ca.key", "sa.key", "sa.pub", "front-proxy-ca.crt", "front-proxy-ca.key"}
	if k.stacked() {
		out = append(out, "etcd/ca.crt", "etcd/ca.key")
	}
	return out
}

// aim returns the node that the control plane endpoint resolves to on a host.
func (k *Kube) aim(s *conntest.Sim) string {
	if k.stands || k.cluster.Spec.ControlPlaneEndpoint.ExternalDNS {
		return k.master
	}
	domain := k.cluster.Spec.ControlPlaneEndpoint.Domain
	for _, line := range s.Grep("/etc/hosts", domain) { // of a thousand lines, one has it
		words := strings.Fields(line)
		if len(words) < 2 || !slices.Contains(words[1:], domain) {
			continue
		}
		for _, h := range k.cluster.Spec.Hosts {
			if h.Address == words[0] || slices.Contains(h.InternalAddress, words[0]) {
				return h.Name
			}
		}
	}
	return k.master
}

// joinMaster simulates `kubeadm join` of a control plane node, which must have the shared
// keys.
func (k *Kube) joinMaster(c call) connector.Result {
	for _, name := range k.shared() {
		if own := c.sim.Read("/etc/kubernetes/pki/" + name); own == "" || own != k.first().Read("/etc/kubernetes/pki/"+name) {
			return failed(1, "error execution phase control-plane-prepare: failure loading key for %s", name)
		}
	}
	if k.stacked() && k.named("v1", "EtcdMember", "", c.host) != nil {
		return failed(1, "error execution phase control-plane-join/etcd: etcdserver: Peer URLs already exists")
	}
	if bad := k.storeReady(c); bad != "" {
		return failed(1, "error execution phase wait-control-plane: %s", bad)
	}
	k.adminConf(c.sim)
	for _, p := range []struct {
		name string
		do   func()
	}{
		{"control-plane", func() { k.controlPlane(c.sim, c.host) }},
		{"kubelet-start", func() { k.kubelet(c.sim) }},
		{"mark-control-plane", func() { k.put(master(c.host)) }},
	} {
		if !k.goesOn(c.host, "join: "+p.name) {
			return killed
		}
		p.do()
	}
	return prints("This node has joined the cluster and a new control plane instance was created\n")
}

// enrol adds the etcd member of a control plane node.
func (k *Kube) enrol(host string) {
	k.put(merged(newObject("v1", "EtcdMember", "", host), Object{"url": "https://" + k.address(host) + ":2380"}))
}

// strike removes the etcd member of a control plane node.
func (k *Kube) strike(host string) {
	if k.stacked() && host != k.master && k.up() {
		k.expel(host)
	}
}

// expel removes the etcd member that kubeadm runs on a control plane node. The others elect a
// leader if it led, and its API server serves nothing any more.
func (k *Kube) expel(host string) {
	if k.named("v1", "EtcdMember", "", host) == nil {
		return
	}
	k.elect(host)
	if k.serves(host) {
		k.Stranded = append(k.Stranded, host)
	}
	k.handOver(host)
	k.drop(newObject("v1", "EtcdMember", "", host))
}

// storeContainer simulates crictl for the etcd container of a control plane node: it finds
// the container, and runs etcdctl in it. Of a command that fails, crictl prints the standard error
// alone, within its own message (ExecSync in pkg/remote of cri-client).
func (k *Kube) storeContainer(c call) connector.Result {
	r := k.inStoreContainer(c)
	if len(c.words) > 2 && c.words[2] == "etcdctl" && r.Exit != 0 {
		text := strings.TrimSpace(string(r.Stderr))
		return failed(1, "time=\"2026-01-01T00:00:00Z\" level=fatal msg=%q", "execing command in container synchronously: command 'etcdctl' exited with 1: "+text)
	}
	return r
}

func (k *Kube) inStoreContainer(c call) connector.Result {
	id := "c0ffee" + c.host
	runs := k.named("v1", "EtcdMember", "", c.host) != nil && c.sim.Read("/etc/kubernetes/manifests/etcd.yaml") != "" &&
		(k.stands || k.engineRuns(c.sim)) &&
		!slices.Contains(k.Unhealthy, "etcd-"+c.host)
	switch {
	case c.words[0] == "ps" && !runs:
		return prints("")
	case c.words[0] == "ps":
		return prints("%s\n", id)
	case !runs || len(c.words) < 4 || c.words[1] != id:
		return failed(1, "execing command in container synchronously: rpc error: code = NotFound desc = an error occurred when try to find container %q: not found", c.words[1:])
	case c.words[2] != "etcdctl" || c.flags["--cacert"] == "" || c.flags["--cert"] == "" || c.flags["--key"] == "":
		return failed(1, "kube: nobody taught me crictl %s", strings.Join(c.words, " "))
	}
	at := c.host
	if other := k.memberAt(c.flags["--endpoints"]); other != "" {
		at = other
	}
	if _, whole := c.flags["--cluster"]; !whole && strings.Join(c.words[3:], " ") == "endpoint health" {
		if !k.answers(at) || k.learns(at) {
			return failed(1, "%s is unhealthy: failed to commit proposal: context deadline exceeded\nError: unhealthy cluster", c.flags["--endpoints"])
		}
		return prints("%s is healthy: successfully committed proposal: took = 1ms\n", c.flags["--endpoints"])
	}
	if r, ok := k.askedStore(at, c.words[3:], c.flags); ok {
		return r
	}
	if c.words[3] != "member" {
		return failed(1, "kube: nobody taught me crictl %s", strings.Join(c.words, " "))
	}
	var rows []string
	for _, m := range k.all("EtcdMember") {
		name := word(m, "metadata", "name")
		if c.words[4] == "remove" && c.words[len(c.words)-1] == memberID(name) {
			k.expel(name)
			return prints("Member %s removed from cluster\n\n\n", memberID(name))
		}
		rows = append(rows, fmt.Sprintf(`{"ID":%d,"name":%q,%s"clientURLs":["https://%s:2379"],"peerURLs":[%q]}`,
			MemberNumber(name), name, k.learnerField(name), k.address(name), word(m, "url")))
	}
	if c.words[4] == "list" { // crictl prints a line for each of the two outputs
		return prints(`{"header":{"cluster_id":1},"members":[%s]}`+"\n\n"+`{"level":"warn","msg":"retrying of unary invoker failed"}`+"\n\n", strings.Join(rows, ","))
	}
	return failed(1, "Error: etcdserver: member not found")
}

// proxyID is the ID of the kube-proxy pod on a host.
const proxyID = "00000000-0000-4000-8000-0000000000aa"

// proxyHosts is the copy of /etc/hosts in kube-proxy.
const proxyHosts = "/var/lib/kubelet/pods/" + proxyID + "/etc-hosts"

// proxy starts kube-proxy on a node, with the current /etc/hosts.
func (*Kube) proxy(s *conntest.Sim) {
	s.AddFile(proxyHosts, "# Kubernetes-managed hosts file (host network).\n"+s.Read("/etc/hosts"), 0o644)
}

package steptest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// stacked reports whether kubeadm runs etcd on the control plane nodes.
func (k *Kube) stacked() bool { return k.cluster.Spec.Etcd.Type == "kubeadm" }

// store returns the host that stores the objects.
func (k *Kube) store() *conntest.Sim {
	if k.cluster.Spec.Etcd.Type == "kubexm" {
		if s := k.hosts[k.cluster.HostsWith(manifest.RoleEtcd)[0].Name]; s != nil {
			return s
		}
	}
	return k.first()
}

// agreed reports whether an etcd that runs as a service has quorum.
func (k *Kube) agreed() bool {
	if k.stands || k.cluster.Spec.Etcd.Type != "kubexm" {
		return true
	}
	members, run := k.members(), 0
	for _, m := range members {
		if k.runs(m) {
			run++
		}
	}
	return run > len(members)/2
}

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

// etcdctl simulates etcdctl for an etcd that runs as a service.
func (k *Kube) etcdctl(c call) connector.Result {
	at := k.memberAt(c.flags["--endpoints"])
	switch {
	case c.sim.Read(c.flags["--cacert"]) == "" || c.sim.Read(c.flags["--cert"]) == "" || c.sim.Read(c.flags["--key"]) == "":
		return failed(1, "Error: open %s: no such file or directory", c.flags["--cert"])
	case at == "" || !k.runs(at) || !k.agreed() || slices.Contains(k.Unhealthy, "etcd-"+at):
		return failed(1, "%s is unhealthy: failed to commit proposal: context deadline exceeded\nError: unhealthy cluster", c.flags["--endpoints"])
	}
	if r, ok := k.askedStore(c.words, c.flags); ok {
		return r
	}
	switch strings.Join(c.words[:min(2, len(c.words))], " ") {
	case "endpoint health":
		return prints("%s is healthy: successfully committed proposal: took = 1ms\n", c.flags["--endpoints"])
	case "member list":
		var rows []string
		for _, m := range k.members() {
			urls := fmt.Sprintf(`"clientURLs":["https://%s:2379"],"name":%q,%s`, k.address(m), m, k.learner(m))
			if k.added[m] {
				urls = ""
			}
			rows = append(rows, fmt.Sprintf(`{"ID":%d,%s"peerURLs":["https://%s:2380"]}`, memberNumber(m), urls, k.address(m)))
		}
		return prints(`{"header":{"cluster_id":1},"members":[%s]}`+"\n", strings.Join(rows, ","))
	case "member remove":
		if k.unsettled("remove " + c.words[2] + " at " + at) {
			return failed(1, "Error: etcdserver: unhealthy cluster")
		}
		for _, m := range k.members() {
			if memberID(m) == c.words[2] {
				k.struck[m] = true
				return prints("Member %s removed from cluster\n", c.words[2])
			}
		}
		return failed(1, "Error: etcdserver: member not found")
	case "member add":
		name := c.words[2]
		if !k.struck[name] || c.flags["--peer-urls"] != "https://"+k.address(name)+":2380" {
			return failed(1, "Error: etcdserver: Peer URLs already exists")
		}
		if k.unsettled("add " + name + " at " + at) {
			return failed(1, "Error: etcdserver: unhealthy cluster")
		}
		delete(k.struck, name)
		k.added[name] = true
		return prints("Member %s added to cluster\n", memberID(name))
	}
	return failed(1, "kube: nobody taught me etcdctl %s", strings.Join(c.words, " "))
}

// unsettled reports whether a member refuses a change of the membership: it refuses each
// change once. etcd does so until all members have been connected for five seconds.
func (k *Kube) unsettled(change string) bool {
	refuses := !k.refused[change]
	k.refused[change] = true
	return refuses
}

// members returns the members of an etcd that runs as a service.
func (k *Kube) members() []string {
	var out []string
	for _, h := range k.cluster.HostsWith(manifest.RoleEtcd) {
		if !k.struck[h.Name] {
			out = append(out, h.Name)
		}
	}
	return out
}

// memberAt returns the member with that endpoint, or "".
func (k *Kube) memberAt(endpoint string) string {
	for _, h := range k.cluster.HostsWith(manifest.RoleEtcd) {
		if endpoint == "https://"+k.address(h.Name)+":2379" {
			return h.Name
		}
	}
	return ""
}

// runs reports whether the member of a host serves. It creates a log at its first start. A
// member that has lost its log does not start again as the same member. A member that was
// added starts only with the initial cluster state "existing".
func (k *Kube) runs(host string) bool {
	s := k.hosts[host]
	if s == nil || !s.Unit("etcd.service").Active || k.struck[host] {
		return false
	}
	log := k.storeDir() + "/wal/0.wal"
	if _, ok := s.File(log); ok {
		return true
	}
	if !k.begun() {
		clear(k.formed)
	}
	joins := strings.Contains(s.Read("/etc/etcd/join.env"), "ETCD_INITIAL_CLUSTER_STATE=existing")
	if k.added[host] != joins || !k.added[host] && k.formed[host] {
		return false
	}
	delete(k.added, host)
	k.formed[host] = true
	s.AddFile(log, "the log of "+host, 0o600)
	return true
}

// begun reports whether any member has data.
func (k *Kube) begun() bool {
	for _, h := range k.cluster.HostsWith(manifest.RoleEtcd) {
		if s := k.hosts[h.Name]; s != nil {
			if _, ok := s.File(k.storeDir() + "/wal/0.wal"); ok {
				return true
			}
		}
	}
	return false
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
	for line := range strings.Lines(s.Read("/etc/hosts")) {
		words := strings.Fields(line)
		if len(words) < 2 || !slices.Contains(words[1:], k.cluster.Spec.ControlPlaneEndpoint.Domain) {
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
		k.drop(newObject("v1", "EtcdMember", "", host))
	}
}

// address returns the address of a host as in a URL.
func (k *Kube) address(host string) string {
	for _, h := range k.cluster.Spec.Hosts {
		if h.Name != host {
			continue
		}
		a := k.cluster.NodeAddresses(h)[0]
		if strings.Contains(a, ":") {
			return "[" + a + "]"
		}
		return a
	}
	return ""
}

// storeContainer simulates crictl for the etcd container of a control plane node: it finds
// the container, and runs etcdctl in it to list or remove members.
func (k *Kube) storeContainer(c call) connector.Result {
	id := "c0ffee" + c.host
	runs := k.named("v1", "EtcdMember", "", c.host) != nil && c.sim.Read("/etc/kubernetes/manifests/kube-apiserver.yaml") != "" &&
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
	if r, ok := k.askedStore(c.words[3:], c.flags); ok {
		return r
	}
	if c.words[3] != "member" {
		return failed(1, "kube: nobody taught me crictl %s", strings.Join(c.words, " "))
	}
	var rows []string
	for _, m := range k.all("EtcdMember") {
		name := word(m, "metadata", "name")
		if c.words[4] == "remove" && c.words[len(c.words)-1] == memberID(name) {
			k.drop(m)
			return prints("Member %s removed from cluster\n\n\n", memberID(name))
		}
		rows = append(rows, fmt.Sprintf(`{"ID":%d,"name":%q,%s"clientURLs":["https://%s:2379"],"peerURLs":[%q]}`,
			memberNumber(name), name, k.learner(name), k.address(name), word(m, "url")))
	}
	if c.words[4] == "list" { // crictl prints a line for each of the two outputs
		return prints(`{"header":{"cluster_id":1},"members":[%s]}`+"\n\n"+`{"level":"warn","msg":"retrying of unary invoker failed"}`+"\n\n", strings.Join(rows, ","))
	}
	return failed(1, "Error: etcdserver: member not found")
}

// memberNumber returns an ID that a float64 cannot represent, as etcd's.
func memberNumber(name string) uint64 {
	n := uint64(1) << 63
	for _, r := range name {
		n += uint64(r) //nolint:gosec // a letter
	}
	return n
}

func memberID(name string) string { return fmt.Sprintf("%x", memberNumber(name)) }

// proxyID is the ID of the kube-proxy pod on a host.
const proxyID = "00000000-0000-4000-8000-0000000000aa"

// proxyHosts is the copy of /etc/hosts in kube-proxy.
const proxyHosts = "/var/lib/kubelet/pods/" + proxyID + "/etc-hosts"

// proxy starts kube-proxy on a node, with the current /etc/hosts.
func (*Kube) proxy(s *conntest.Sim) {
	s.AddFile(proxyHosts, "# Kubernetes-managed hosts file (host network).\n"+s.Read("/etc/hosts"), 0o644)
}

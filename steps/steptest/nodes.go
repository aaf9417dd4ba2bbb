package steptest

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector"
)

// node returns a node with the status that its kubelet would report.
func (k *Kube) node(o Object) Object {
	status, message := "False", "container runtime network not ready"
	if k.ready(word(o, "metadata", "name")) {
		status, message = "True", "kubelet is posting ready status"
	}
	return merged(o, Object{"status": Object{"allocatable": Object{"cpu": "4", "memory": "8Gi", "pods": "110"}, "conditions": []any{Object{"type": "Ready", "status": status, "message": message}},
		"nodeInfo": Object{"kubeletVersion": cmp.Or(k.Kubelets[word(o, "metadata", "name")], k.cluster.Spec.Kubernetes.Version)}}})
}

// ready reports whether a node is ready: its programs run, and the pod network exists.
func (k *Kube) ready(name string) bool { return k.nodeRuns(name) && k.networked() }

// readyNodes returns the names of all ready nodes, and how many nodes there are.
func (k *Kube) readyNodes() (ready []string, all int) {
	networked := k.networked() // once: it reads every object of the cluster
	nodes := k.all("Node")
	for _, n := range nodes {
		if name := word(n, "metadata", "name"); networked && k.nodeRuns(name) {
			ready = append(ready, name)
		}
	}
	return ready, len(nodes)
}

// networked reports whether the pod network exists.
func (k *Kube) networked() bool {
	network := part.NetworkOf(k.cluster)
	return k.stands || network.Name == "" || slices.ContainsFunc(k.all("DaemonSet"), func(o Object) bool { return word(o, "metadata", "name") == network.DaemonSet })
}

// nodeRuns reports whether the programs of a node run.
func (k *Kube) nodeRuns(name string) bool {
	if slices.Contains(k.Unhealthy, name) {
		return false
	}
	s := k.hosts[name]
	if s == nil {
		return k.stands
	}
	u := s.Unit("kubelet.service")
	return k.stands && (!u.Exists || u.Active) || !k.stands && u.Active && k.engineRuns(s)
}

// mark sets labels or taints of a node.
func (k *Kube) mark(verb, name string, marks []string) connector.Result {
	o := k.named("v1", "Node", "", name)
	if o == nil {
		return failed(1, "Error from server (NotFound): nodes %q not found", name)
	}
	for _, m := range marks {
		key, value, _ := strings.Cut(m, "=")
		if verb == "label" {
			o = merged(o, Object{"metadata": Object{"labels": Object{key: value}}})
			continue
		}
		value, effect, _ := strings.Cut(value, ":")
		taints, _ := at(o, "spec", "taints").([]any)
		taints = slices.DeleteFunc(taints, func(t any) bool { return word(t, "key") == key && word(t, "effect") == effect })
		o = merged(o, Object{"spec": Object{"taints": append(taints, Object{"key": key, "value": value, "effect": effect})}})
	}
	k.put(o)
	return prints("node/%s %sed\n", name, verb)
}

// isMaster reports whether a host is a control plane node.
func (k *Kube) isMaster(host string) bool {
	return k.cluster.Spec.RoleGroups.Has(manifest.RoleMaster, host)
}

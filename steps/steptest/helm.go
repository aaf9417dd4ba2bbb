package steptest

import (
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector"
)

// helm simulates helm. It stores releases as objects; a chart's only object is a ConfigMap
// of its name, and the workloads of the pod network if it is the network's chart.
func (k *Kube) helm(c call) connector.Result {
	ns := c.flags["--namespace"]
	if _, ok := c.sim.File(c.flags["--kubeconfig"]); !ok || !k.reached(c) {
		return failed(1, "Error: Kubernetes cluster unreachable: dial tcp: connect: connection refused")
	}
	if len(c.words) < 2 {
		return failed(1, "Error: %q requires at least 1 argument", c.words)
	}
	release := newObject("helm.sh/v1", "Release", ns, c.words[1])
	have := k.get(release)
	body := newObject("v1", "ConfigMap", ns, c.words[1])
	switch c.words[0] {
	case "status":
		if have == nil {
			return failed(1, "Error: release: not found")
		}
		return prints("%s", text(Object{"name": c.words[1], "namespace": ns, "version": have["version"], "info": have["info"]}))
	case "upgrade":
		return k.upgrade(c, release, have, body)
	case "rollback":
		old, ok := at(have, "history", "r"+c.words[2]).(string)
		if !ok {
			return failed(1, "Error: release has no %s version", c.words[2])
		}
		k.revise(release, have, body, old, "Rollback to "+c.words[2])
		return prints("Rollback was a success! Happy Helming!\n")
	case "uninstall":
		for _, o := range append(k.ofNetwork(c.words[1]), release, body) {
			k.drop(o)
		}
		return prints("release %q uninstalled\n", c.words[1])
	}
	return failed(1, "kube: nobody taught me helm %s", strings.Join(c.words, " "))
}

// ofNetwork returns the workloads of a release, if it is the pod network's.
func (k *Kube) ofNetwork(release string) []Object {
	n := part.NetworkOf(k.cluster)
	if !n.Chart || release != n.Name {
		return nil
	}
	out := []Object{newObject("apps/v1", "DaemonSet", n.Namespace, n.DaemonSet)}
	for _, name := range n.Deployments {
		out = append(out, newObject("apps/v1", "Deployment", n.Namespace, name))
	}
	return out
}

func (k *Kube) upgrade(c call, release, have, body Object) connector.Result {
	ns := c.flags["--namespace"]
	chart := c.sim.Read(c.words[2])
	if chart == "" {
		return failed(1, "Error: path %q not found", c.words[2])
	}
	if strings.HasPrefix(word(have, "info", "status"), "pending-") {
		return failed(1, "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress")
	}
	if k.named("v1", "Namespace", "", ns) == nil {
		if _, ok := c.flags["--create-namespace"]; !ok {
			return failed(1, "Error: create: failed to create: namespaces %q not found", ns)
		}
		k.put(newObject("v1", "Namespace", "", ns))
	}
	k.revise(release, have, body, chart+string(c.stdin), c.flags["--description"])
	return prints("%s", text(k.get(release)))
}

// revise creates the next revision of a release.
func (k *Kube) revise(release, have, body Object, content, description string) {
	version := 1.0
	if v, ok := at(have, "version").(float64); ok {
		version = v + 1
	}
	k.put(merged(merged(release, have), Object{"version": version, "info": Object{"status": "deployed", "description": description},
		"history": Object{fmt.Sprintf("r%v", version): content}}))
	k.put(merged(body, Object{"data": Object{"content": content}}))
	for _, o := range k.ofNetwork(word(body, "metadata", "name")) {
		k.put(o)
	}
}

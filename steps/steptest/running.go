package steptest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
)

// staticPods are the static pods of a control plane node.
var staticPods = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"}

// podRuns reports whether the kubelet of a host runs a static pod.
func (k *Kube) podRuns(host, part string) bool {
	s := k.hosts[host]
	file := "kube-apiserver.yaml" // stands for the other two as well
	if part == "etcd" {
		file = "etcd.yaml"
	}
	if s == nil || s.Read("/etc/kubernetes/manifests/"+file) == "" || !slices.Contains(staticPods, part) {
		return false
	}
	return !slices.Contains(k.Unhealthy, part+"-"+host) && (k.stands || k.engineRuns(s))
}

// sandboxID returns the sandbox ID of a static pod, which changes with each start. The kubelet starts
// a pod again whose manifest has changed.
func (k *Kube) sandboxID(host, part string) string {
	pod := part + "-" + host
	text := k.hosts[host].Read("/etc/kubernetes/manifests/" + part + ".yaml")
	if was, ran := k.manifests[pod]; ran && was != text {
		k.started[pod]++
	}
	k.manifests[pod] = text
	return fmt.Sprintf("sandbox-%d-%s", k.started[pod], pod)
}

// crictlPods simulates crictl for static pods: it lists sandboxes and containers, and stops
// them. The kubelet restarts a stopped sandbox.
func (k *Kube) crictlPods(c call) (connector.Result, bool) {
	if r, ok := k.workerPods(c); ok {
		return r, true
	}
	if r, ok := k.kubeVIPPods(c); ok {
		return r, true
	}
	switch c.words[0] {
	case "pods":
		part := strings.TrimSuffix(strings.TrimPrefix(c.flags["--name"], "^"), "-"+c.host+"$")
		if !slices.Contains(staticPods, part) {
			return connector.Result{}, false
		}
		if !k.podRuns(c.host, part) {
			return prints(""), true
		}
		return prints("%s\n", k.sandboxID(c.host, part)), true
	case "ps":
		part := strings.Trim(c.flags["--name"], "^$")
		if in := c.flags["--pod"]; in == "" {
			return connector.Result{}, false
		} else if !k.podRuns(c.host, part) || in != k.sandboxID(c.host, part) {
			return prints(""), true
		}
		return prints("container-of-%s\n", k.sandboxID(c.host, part)), true
	case "stop":
		for _, part := range staticPods {
			if k.podRuns(c.host, part) && c.words[1] == "container-of-"+k.sandboxID(c.host, part) {
				k.stops = append(k.stops, part+" on "+c.host)
				return prints("%s\n", c.words[1]), true
			}
		}
		return failed(1, "E0000 StopContainer from runtime service failed: rpc error: code = NotFound"), true
	case "stopp":
		for _, part := range staticPods {
			if !k.podRuns(c.host, part) || c.words[1] != k.sandboxID(c.host, part) {
				continue
			}
			k.started[part+"-"+c.host]++
			if k.OnSandboxStop != nil {
				k.OnSandboxStop()
			}
			if part == "etcd" {
				k.elect(c.host)
			}
			return prints("Stopped sandbox %s\n", c.words[1]), true
		}
		return failed(1, "E0000 StopPodSandbox from runtime service failed: rpc error: code = NotFound"), true
	}
	return connector.Result{}, false
}

// Stopped returns the stopped containers of static pods in order: "etcd on m1".
func (k *Kube) Stopped() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.stops)
}

// addressed returns the control plane node with that address, or "".
func (k *Kube) addressed(server string) string {
	for _, h := range k.cluster.HostsWith(manifest.RoleMaster) {
		if strings.Contains(server, "//"+k.address(h.Name)+":") {
			return h.Name
		}
	}
	return ""
}

package steptest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// readyPath begins the only filter expressions in custom columns that the simulated kubectl
// supports.
const readyPath = `.status.conditions[?(@.type=="Ready")].`

// columns prints objects as kubectl's custom-columns does, without a header.
func columns(objects []Object, spec string) connector.Result {
	var b strings.Builder
	for _, o := range objects {
		var row []string
		for _, c := range strings.Split(strings.TrimPrefix(spec, "custom-columns="), ",") {
			_, path, _ := strings.Cut(c, ":")
			row = append(row, column(o, path))
		}
		b.WriteString(strings.Join(row, "   ") + "\n")
	}
	return connector.Result{Stdout: []byte(b.String())}
}

func column(o Object, path string) string {
	if field, ok := strings.CutPrefix(path, readyPath); ok {
		conditions, _ := at(o, "status", "conditions").([]any)
		for _, c := range conditions {
			if word(c, "type") == "Ready" && field == "lastHeartbeatTime" {
				return cmp.Or(word(c, field), reported)
			}
			if word(c, "type") == "Ready" {
				return word(c, field)
			}
		}
		return "<none>"
	}
	const dot = "\x00"
	before, after, many := strings.Cut(strings.ReplaceAll(path, `\.`, dot), "[*]")
	keys := func(p string) []string {
		var out []string
		for _, k := range strings.Split(strings.Trim(p, "."), ".") {
			out = append(out, strings.ReplaceAll(k, dot, "."))
		}
		return out
	}
	v := at(o, keys(before)...)
	if !many {
		if v == nil {
			return "<none>"
		}
		return fmt.Sprint(v)
	}
	items, _ := v.([]any)
	var all []string
	for _, i := range items {
		all = append(all, fmt.Sprint(at(i, keys(after)...)))
	}
	if len(all) == 0 {
		return "<none>"
	}
	return strings.Join(all, ",")
}

// getColumns implements `kubectl get` with custom columns.
func (k *Kube) getColumns(c call) connector.Result {
	var out []Object
	if len(c.words) > 2 { // of one object
		if c.words[1] != "node" {
			return failed(1, "kube: nobody taught me kubectl %s", strings.Join(c.words, " "))
		}
		o := k.named("v1", "Node", "", c.words[2])
		if o == nil {
			return failed(1, "Error from server (NotFound): nodes %q not found", c.words[2])
		}
		return columns([]Object{k.node(o)}, c.flags["-o"])
	}
	for _, kind := range strings.Split(c.words[1], ",") {
		switch kind {
		case "nodes":
			for _, o := range k.all("Node") {
				out = append(out, k.node(o))
			}
		case "pods":
			if c.flags["-l"] == dnsLabel {
				for _, o := range k.all("Pod") {
					if word(o, "metadata", "labels", "k8s-app") == "kube-dns" {
						out = append(out, o)
					}
				}
				continue
			}
			out = append(out, k.podsOn(strings.TrimPrefix(c.flags["--field-selector"], "spec.nodeName="))...)
		case "deployments", "statefulsets", "daemonsets":
			of := map[string]string{"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}[kind]
			for _, o := range k.all(of) {
				out = append(out, k.workload(strings.ToLower(of), word(o, "metadata", "namespace"), word(o, "metadata", "name")))
			}
		case "poddisruptionbudgets":
			for _, o := range k.all("PodDisruptionBudget") {
				out = append(out, k.budget(o))
			}
		case "endpointslices":
			out = append(out, k.all("EndpointSlice")...)
		default:
			return failed(1, "error: the server doesn't have a resource type %q", kind)
		}
	}
	return columns(out, c.flags["-o"])
}

// dnsLabel selects the pods of CoreDNS. A test creates them.
const dnsLabel = "k8s-app=kube-dns"

// podsOn returns the pods of DaemonSets on a node.
func (k *Kube) podsOn(node string) []Object {
	pod := func(ns, name, owner string, ready bool) Object {
		status := running(ready)
		if k.abandoned[node] {
			status = Object{"phase": "Pending"}
		}
		return merged(newObject("v1", "Pod", ns, name), Object{"spec": Object{"nodeName": node}, "status": status,
			"metadata": Object{"ownerReferences": []any{Object{"kind": "DaemonSet", "name": owner, "controller": true}}}})
	}
	var out []Object
	for _, d := range k.all("DaemonSet") {
		name := word(d, "metadata", "name")
		out = append(out, pod(word(d, "metadata", "namespace"), name+"-"+node, name, k.ready(node) && !slices.Contains(k.Unhealthy, name+"-"+node)))
	}
	return out
}

// Put stores an object, as a user does.
func (k *Kube) Put(o Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.put(o)
}

// Drop deletes an object, as a user does.
func (k *Kube) Drop(api, kind, namespace, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(newObject(api, kind, namespace, name))
}

package steptest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Pods returns the names of the pods that tests created, or their controllers after an
// eviction, on a node: "default/web-0". Of the node "" they are Pending.
func (k *Kube) Pods(node string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, p := range k.all("Pod") {
		if word(p, "spec", "nodeName") == node {
			out = append(out, podName(p))
		}
	}
	return out
}

func podName(p Object) string {
	return word(p, "metadata", "namespace") + "/" + word(p, "metadata", "name")
}

// pods returns all pods of the cluster, or those on a node: the stored ones, those of
// DaemonSets, and the mirror pods of static pods.
func (k *Kube) pods(node string) []Object {
	var out []Object
	for _, p := range k.all("Pod") {
		if node == "" || word(p, "spec", "nodeName") == node {
			out = append(out, p)
		}
	}
	for _, n := range k.all("Node") {
		name := word(n, "metadata", "name")
		if node != "" && name != node {
			continue
		}
		out = append(out, k.podsOn(name)...)
		for _, part := range staticPods {
			if k.podRuns(name, part) && !k.abandoned[name] {
				out = append(out, merged(newObject("v1", "Pod", "kube-system", part+"-"+name), Object{"spec": Object{"nodeName": name}, "status": running(true),
					"metadata": Object{"annotations": Object{"kubernetes.io/config.mirror": "hash"}, "ownerReferences": []any{Object{"kind": "Node", "name": name, "controller": true}}}}))
			}
		}
	}
	return out
}

// running returns the status of a running pod.
func running(ready bool) Object {
	state := map[bool]string{true: "True", false: "False"}[ready]
	return Object{"phase": "Running", "conditions": []any{Object{"type": "Ready", "status": state}}}
}

func podReady(p Object) bool { return column(p, readyPath+"status") == "True" }

// controller returns the kind and the name of a pod's controller.
func controller(p Object) (kind, name string) {
	owners, _ := at(p, "metadata", "ownerReferences").([]any)
	for _, o := range owners {
		if at(o, "controller") == true {
			return word(o, "kind"), word(o, "name")
		}
	}
	return "", ""
}

func finished(p Object) bool {
	return slices.Contains([]string{"Succeeded", "Failed"}, word(p, "status", "phase"))
}

// getList implements `kubectl get` of all nodes, pods or PodDisruptionBudgets of the cluster as
// JSON or with a template. It executes templates as kubectl does.
func (k *Kube) getList(c call) connector.Result {
	var items []Object
	_, everywhere := c.flags["-A"]
	switch kind := c.words[1]; {
	case kind == "nodes":
		for _, o := range k.all("Node") {
			items = append(items, k.node(o))
		}
	case !everywhere:
		return failed(1, "kube: kubectl get %s without -A lists one namespace", kind)
	case kind == "pods":
		items = k.pods(strings.TrimPrefix(c.flags["--field-selector"], "spec.nodeName="))
	case kind == "poddisruptionbudgets":
		for _, o := range k.all("PodDisruptionBudget") {
			items = append(items, k.budget(o))
		}
	default:
		return failed(1, "error: the server doesn't have a resource type %q", kind)
	}
	if items == nil {
		items = []Object{}
	}
	list := Object{"apiVersion": "v1", "kind": "List", "items": items}
	text, ok := strings.CutPrefix(c.flags["-o"], "go-template=")
	if !ok {
		return printed([]Object{list}, true)
	}
	t, err := template.New("output").Parse(text)
	if err != nil {
		return failed(1, "error: error parsing template %s, %v", text, err)
	}
	var generic Object
	b, err := json.Marshal(list)
	if err == nil {
		err = json.Unmarshal(b, &generic)
	}
	var out bytes.Buffer
	if err == nil {
		err = t.Execute(&out, generic)
	}
	if err != nil {
		return failed(1, "error: error executing template %q: %v", text, err)
	}
	return connector.Result{Stdout: out.Bytes()}
}

// budget returns a PodDisruptionBudget with the status that its controller would write. One
// without a selector has the status that the test gave it.
func (k *Kube) budget(o Object) Object {
	if at(o, "spec", "selector") == nil {
		return o
	}
	expected, healthy := 0, 0
	for _, p := range k.all("Pod") {
		if !covers(o, p) || finished(p) {
			continue
		}
		expected++
		if podReady(p) && word(p, "metadata", "deletionTimestamp") == "" {
			healthy++
		}
	}
	desired := expected
	if n, ok := at(o, "spec", "minAvailable").(float64); ok {
		desired = int(n)
	} else if n, ok := at(o, "spec", "maxUnavailable").(float64); ok {
		desired = max(expected-int(n), 0)
	}
	return merged(o, Object{"status": Object{"expectedPods": float64(expected), "currentHealthy": float64(healthy), "desiredHealthy": float64(desired),
		"disruptionsAllowed": float64(max(healthy-desired, 0))}})
}

// covers reports whether the selector of a budget matches a pod. It implements matchLabels only.
func covers(budget, pod Object) bool {
	if word(budget, "metadata", "namespace") != word(pod, "metadata", "namespace") || at(budget, "spec", "selector") == nil {
		return false
	}
	labels, _ := at(budget, "spec", "selector", "matchLabels").(Object)
	for key, v := range labels {
		if at(pod, "metadata", "labels", key) != v {
			return false
		}
	}
	return true
}

// available returns how many pods of a Deployment or StatefulSet are ready. It returns false if
// the test created no pods for it.
func (k *Kube) available(kind, namespace, name string) (int, bool) {
	count, found := 0, false
	for _, p := range k.all("Pod") {
		owner, of := controller(p)
		owned := owner == "StatefulSet" && kind == "statefulset" && of == name || owner == "ReplicaSet" && kind == "deployment" && strings.HasPrefix(of, name+"-")
		if word(p, "metadata", "namespace") != namespace || !owned {
			continue
		}
		found = true
		if podReady(p) {
			count++
		}
	}
	return count, found
}

// replace has the controller of a deleted pod create another one.
func (k *Kube) replace(p Object) {
	kind, _ := controller(p)
	if kind == "" || finished(p) {
		return
	}
	name := word(p, "metadata", "name")
	if kind != "StatefulSet" { // the pod gets another name
		stem, number := name, 0
		if i := strings.LastIndexByte(name, '-'); i >= 0 {
			if n, err := strconv.Atoi(name[i+1:]); err == nil {
				stem, number = name[:i], n
			}
		}
		for name == word(p, "metadata", "name") || k.named("v1", "Pod", word(p, "metadata", "namespace"), name) != nil {
			number++
			name = fmt.Sprintf("%s-%d", stem, number)
		}
	}
	fresh := merged(p, Object{"metadata": Object{"name": name}, "status": Object{"phase": "Pending"}})
	spec, _ := fresh["spec"].(Object)
	fresh["spec"] = merged(spec, nil)
	delete(fresh["spec"].(Object), "nodeName")              //nolint:errcheck,forcetypeassert // merged returns an Object
	delete(fresh["metadata"].(Object), "deletionTimestamp") //nolint:errcheck,forcetypeassert // the same
	delete(fresh["status"].(Object), "conditions")          //nolint:errcheck,forcetypeassert // the same
	k.put(fresh)
	k.schedule()
}

// schedule starts Pending pods on the schedulable node that has the fewest pods.
func (k *Kube) schedule() {
	for _, p := range k.all("Pod") {
		if word(p, "spec", "nodeName") != "" || word(p, "status", "phase") != "Pending" {
			continue
		}
		best, fewest := "", 0
		for _, n := range k.all("Node") {
			name := word(n, "metadata", "name")
			taints, _ := at(n, "spec", "taints").([]any)
			tainted := slices.ContainsFunc(taints, func(t any) bool { return word(t, "effect") != "PreferNoSchedule" })
			count := 0
			for _, o := range k.all("Pod") {
				if word(o, "spec", "nodeName") == name {
					count++
				}
			}
			if !tainted && k.ready(name) && (best == "" || count < fewest) {
				best, fewest = name, count
			}
		}
		if best != "" {
			k.put(merged(p, Object{"spec": Object{"nodeName": best}, "status": running(true)}))
		}
	}
}

// lingers reports whether the containers of a pod do not end after a deletion.
func (k *Kube) lingers(p Object) bool { return slices.Contains(k.Lingering, podName(p)) }

// remove deletes a pod, as the API server and the kubelet do.
func (k *Kube) remove(p Object) {
	if k.lingers(p) {
		grace := cmp.Or(at(p, "spec", "terminationGracePeriodSeconds"), any(30.0))
		k.put(merged(p, Object{"metadata": Object{"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace}}))
		return
	}
	k.drop(p)
	k.replace(p)
}

// abandon implements `kubectl delete pods --force` for all pods of a node, whose kubelet does not run:
// those of DaemonSets are created again, and wait for it.
func (k *Kube) abandon(node string) connector.Result {
	if k.named("v1", "Node", "", node) != nil {
		k.abandoned[node] = true
	}
	for _, p := range k.all("Pod") {
		if word(p, "spec", "nodeName") == node {
			k.drop(p)
			k.replace(p)
		}
	}
	return prints("pods force deleted\n")
}

// dropNode deletes a node. Its pods stay.
func (k *Kube) dropNode(name string) {
	runs := func(p Object) bool { return word(p, "status", "phase") == "Running" }
	if slices.ContainsFunc(k.pods(name), runs) {
		k.Orphaned = append(k.Orphaned, name)
	}
	k.drop(newObject("v1", "Node", "", name))
	delete(k.abandoned, name)
}

package steptest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/steps/connector"
)

// kubectl simulates the kubectl commands that steps use. Any other command is an error.
func (k *Kube) kubectl(c call) connector.Result {
	if c.flags["--kubeconfig"] == "" || len(c.words) == 0 {
		return failed(1, "error: no kubeconfig, or nothing to do")
	}
	if _, ok := c.sim.File(c.flags["--kubeconfig"]); !ok {
		return failed(1, "error: stat %s: no such file or directory", c.flags["--kubeconfig"])
	}
	if !k.reached(c) || c.sim.Read(c.flags["--kubeconfig"]) == "" { // an empty kubeconfig means localhost
		return failed(1, "The connection to the server %s:6443 was refused - did you specify the right host or port?", k.master)
	}
	cache := c.flags["--cache-dir"]
	if cache == "" {
		cache = "/root/.kube/cache" // where it is not told otherwise
	}
	c.sim.AddFile(cache+"/servergroups.json", "{}", 0o600)
	verb := c.words[0]
	if c.flags["--raw"] != "" {
		return k.raw(verb, c)
	}
	if c.flags["-f"] == "-" {
		return k.files(verb, c)
	}
	switch verb {
	case "get":
		switch _, all := c.flags["-A"]; {
		case strings.HasPrefix(c.flags["-o"], "custom-columns="):
			return k.getColumns(c)
		case all || c.words[1] == "nodes" && strings.HasPrefix(c.flags["-o"], "go-template="):
			return k.getList(c)
		}
		return k.getNamed(c)
	case "exec", "logs", "attach", "port-forward":
		return k.throughKubelet(c)
	case "delete":
		if c.words[1] == "node" {
			for _, name := range c.words[2:] {
				k.dropNode(name)
			}
			return prints("nodes deleted\n")
		}
		if node, ok := strings.CutPrefix(c.flags["--field-selector"], "spec.nodeName="); ok && c.words[1] == "pods" {
			return k.abandon(node)
		}
		k.proxy(c.sim) // a pod of kube-proxy, which comes again at once
		return prints("pod %q deleted\n", c.words[2])
	case "label", "taint":
		return k.mark(verb, c.words[2], c.words[3:])
	case "drain":
		return k.drain(c)
	case "cordon", "uncordon":
		return k.cordon(c.words[1], verb == "cordon")
	case "patch":
		return k.patchNode(c)
	case "rollout":
		kind, name, _ := strings.Cut(c.words[2], "/")
		if k.workload(kind, c.flags["-n"], name) == nil {
			return failed(1, "Error from server (NotFound): %s.apps %q not found", kind, name)
		}
		return prints("%s %q successfully rolled out\n", kind, name)
	}
	return failed(1, "kube: nobody taught me kubectl %s", strings.Join(c.words, " "))
}

// documents parses the objects on stdin, as the API server does.
func documents(text []byte) ([]Object, error) {
	var out []Object
	d := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var raw any
		if err := d.Decode(&raw); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		text, err := json.Marshal(raw)
		if err != nil {
			return nil, err
		}
		var o Object
		if err := json.Unmarshal(text, &o); err != nil || o == nil {
			continue
		}
		items, isList := o["items"].([]any)
		if !isList {
			out = append(out, stored(o))
		}
		for _, i := range items {
			if o, ok := i.(Object); ok {
				out = append(out, stored(o))
			}
		}
	}
}

// stored returns an object in its stored form.
func stored(o Object) Object {
	plain, ok := o["stringData"].(Object)
	if !ok {
		return o
	}
	data := Object{}
	for key, v := range plain {
		data[key] = base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(v)))
	}
	o = merged(o, Object{"data": data})
	delete(o, "stringData")
	return o
}

// files applies a verb to the objects on stdin.
func (k *Kube) files(verb string, c call) connector.Result {
	bad := 1
	if verb == "diff" {
		bad = 2
	}
	objects, err := documents(c.stdin)
	if err != nil {
		return failed(bad, "error: error parsing STDIN: %v", err)
	}
	for _, o := range objects { // kubectl asks for every kind before it begins
		if !k.knows(o) {
			return failed(bad, "error: resource mapping not found for name: %q from \"STDIN\": no matches for kind %q in version %q\nensure CRDs are installed first",
				word(o, "metadata", "name"), word(o, "kind"), word(o, "apiVersion"))
		}
	}
	var out connector.Result
	var found []Object
	for _, o := range objects {
		live := k.get(o)
		switch verb {
		case "get":
			if live != nil {
				found = append(found, served(live))
			}
		case "delete":
			k.drop(o)
		case "replace":
			if live == nil {
				return failed(1, "Error from server (NotFound): %s %q not found", word(o, "kind"), word(o, "metadata", "name"))
			}
			k.put(bare(o))
		case "apply", "diff":
			if res := k.apply(verb, o, live, &out); res.Exit > 0 {
				return res
			}
		default:
			return failed(1, "kube: nobody taught me kubectl %s -f", verb)
		}
	}
	if verb == "get" {
		return printed(found, len(objects) == 1)
	}
	return out
}

// apply merges o into the live object, or returns the diff.
func (k *Kube) apply(verb string, o, live Object, out *connector.Result) connector.Result {
	ns := word(o, "metadata", "namespace")
	if ns != "" && !slices.Contains(clusterWide, word(o, "kind")) && k.named("v1", "Namespace", "", ns) == nil {
		return failed(map[string]int{"apply": 1, "diff": 2}[verb], "Error from server (NotFound): namespaces %q not found", ns)
	}
	want := merged(live, o)
	before, after := text(live), text(want)
	switch {
	case verb == "apply":
		k.put(want)
	case before != after:
		out.Exit = 1
		out.Stdout = fmt.Appendf(out.Stdout, "diff -u -N LIVE MERGED\n--- LIVE\n+++ MERGED\n@@ -1 +1 @@\n-%s\n+%s\n", before, after)
	}
	return connector.Result{}
}

func text(o Object) string {
	if o == nil {
		return ""
	}
	b, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// knows reports whether the API server has a kind: built in, or defined by a CRD.
func (k *Kube) knows(o Object) bool {
	group, _, ok := strings.Cut(word(o, "apiVersion"), "/")
	if !ok || !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") {
		return true
	}
	return slices.ContainsFunc(k.all("CustomResourceDefinition"), func(crd Object) bool {
		return word(crd, "spec", "group") == group && word(crd, "spec", "names", "kind") == word(o, "kind")
	})
}

// bare returns an object without the fields that served adds.
func bare(o Object) Object {
	meta, _ := o["metadata"].(Object)
	if meta = maps.Clone(meta); meta != nil {
		for _, key := range []string{"uid", "resourceVersion", "creationTimestamp"} {
			delete(meta, key)
		}
		o = maps.Clone(o)
		o["metadata"] = meta
	}
	return o
}

// served returns an object as the API server returns it.
func served(o Object) Object {
	return merged(o, Object{"metadata": Object{"uid": "00000000-0000-4000-8000-000000000000", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}})
}

func printed(objects []Object, alone bool) connector.Result {
	var v any = Object{"apiVersion": "v1", "kind": "List", "items": objects}
	switch {
	case len(objects) == 0:
		return connector.Result{}
	case alone:
		v = objects[0]
	}
	b, err := json.Marshal(v)
	if err != nil {
		return failed(1, "%v", err)
	}
	return connector.Result{Stdout: b}
}

// getNamed implements `kubectl get` of named objects, or of all nodes.
func (k *Kube) getNamed(c call) connector.Result {
	what, output := c.words[1], c.flags["-o"]
	if what == "node" && len(c.words) > 2 {
		o := k.named("v1", "Node", "", c.words[2])
		if _, quiet := c.flags["--ignore-not-found"]; o == nil && quiet {
			return prints("")
		}
		if o == nil {
			return failed(1, "Error from server (NotFound): nodes %q not found", c.words[2])
		}
		return printed([]Object{k.node(o)}, true)
	}
	if what == "certificatesigningrequests" {
		return k.requests(c)
	}
	if what == "nodes" {
		var names []string
		ready, _ := k.readyNodes()
		for _, o := range k.all("Node") {
			name, state := word(o, "metadata", "name"), "False"
			if slices.Contains(ready, name) {
				state = "True"
			}
			names = append(names, name+"="+state)
		}
		return prints("%s", strings.Join(names, " "))
	}
	if what == "pods" && c.flags["-l"] == "k8s-app=kube-proxy" {
		return prints("kube-proxy-%s=%s ", c.host, proxyID)
	}
	var names []string
	var objects []Object
	for _, w := range c.words[1:] {
		kind, name, _ := strings.Cut(w, "/")
		o := k.workload(kind, c.flags["-n"], name)
		if _, quiet := c.flags["--ignore-not-found"]; o == nil && quiet {
			continue
		}
		if o == nil {
			return failed(1, "Error from server (NotFound): %s %q not found", kind, name)
		}
		names, objects = append(names, w), append(objects, o)
	}
	switch {
	case output == "name":
		return prints("%s\n", strings.Join(names, "\n"))
	case output == "json", output == "yaml": // which JSON is
		return printed(objects, len(objects) == 1)
	case strings.HasPrefix(output, "jsonpath"):
		return prints("%v/%v", orEmpty(at(objects[0], "status", "readyReplicas")), orEmpty(at(objects[0], "spec", "replicas")))
	}
	return failed(1, "kube: nobody taught me kubectl get %s", strings.Join(c.words, " "))
}

func orEmpty(v any) any {
	if v == nil {
		return ""
	}
	return v
}

// workload returns an object with the status that its controller would write.
func (k *Kube) workload(kind, ns, name string) Object {
	kinds := map[string][2]string{"deployment": {"apps/v1", "Deployment"}, "daemonset": {"apps/v1", "DaemonSet"}, "statefulset": {"apps/v1", "StatefulSet"},
		"job": {"batch/v1", "Job"}, "configmap": {"v1", "ConfigMap"}, "secret": {"v1", "Secret"}}
	id, ok := kinds[kind]
	if !ok {
		return nil
	}
	o := k.named(id[0], id[1], ns, name)
	if o == nil {
		return nil
	}
	if kind == "configmap" || kind == "secret" {
		return served(o)
	}
	nodes, scheduled := k.readyNodes()
	ready := len(nodes)
	replicas, ok := at(o, "spec", "replicas").(float64)
	if !ok {
		replicas = 1
	}
	for _, n := range nodes {
		if kind == "daemonset" && slices.Contains(k.Unhealthy, name+"-"+n) {
			ready--
		}
	}
	status := Object{"observedGeneration": 1.0, "numberAvailable": float64(ready), "desiredNumberScheduled": float64(scheduled), "numberReady": float64(ready), "updatedNumberScheduled": float64(ready)}
	if ready > 0 {
		status["readyReplicas"], status["updatedReplicas"], status["succeeded"] = replicas, replicas, 1.0
		status["availableReplicas"] = replicas
		if n, counted := k.available(kind, ns, name); counted {
			status["readyReplicas"], status["availableReplicas"] = float64(n), float64(n)
		}
		if slices.Contains(k.Unhealthy, name) {
			status["readyReplicas"], status["availableReplicas"] = 0.0, 0.0
		}
	}
	return served(merged(o, Object{"status": status, "spec": Object{"replicas": replicas}, "metadata": Object{"generation": 1.0}}))
}

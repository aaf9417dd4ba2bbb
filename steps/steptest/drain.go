package steptest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// unschedulable is the taint that the node controller sets on a cordoned node.
const unschedulable = "node.kubernetes.io/unschedulable"

// The refusals of the eviction API, as of Kubernetes 1.32.
const (
	overBudget = "Cannot evict pod as it would violate the pod's disruption budget."
	twoBudgets = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)

// patchNode implements `kubectl patch node` with a merge patch.
func (k *Kube) patchNode(c call) connector.Result {
	if len(c.words) != 3 || c.words[1] != "node" || c.flags["--type"] != "merge" {
		return failed(1, "kube: nobody taught me kubectl %s", strings.Join(c.words, " "))
	}
	o := k.named("v1", "Node", "", c.words[2])
	if o == nil {
		return failed(1, "Error from server (NotFound): nodes %q not found", c.words[2])
	}
	var patch Object
	if err := json.Unmarshal([]byte(c.flags["-p"]), &patch); err != nil {
		return failed(1, "error: unable to parse %q: %v", c.flags["-p"], err)
	}
	k.settle(mergePatch(o, patch))
	return prints("node/%s patched\n", c.words[2])
}

// mergePatch applies a JSON merge patch (RFC 7386). Empty objects vanish, as they do in Go's
// types with omitempty.
func mergePatch(o, patch Object) Object {
	out := maps.Clone(o)
	if out == nil {
		out = Object{}
	}
	for key, v := range patch {
		inner, isObject := v.(Object)
		if isObject {
			below, _ := out[key].(Object)
			inner = mergePatch(below, inner)
			v = inner
		}
		if v == nil || isObject && len(inner) == 0 {
			delete(out, key)
			continue
		}
		out[key] = v
	}
	return out
}

// cordon implements `kubectl cordon` and `kubectl uncordon`.
func (k *Kube) cordon(name string, on bool) connector.Result {
	o := k.named("v1", "Node", "", name)
	if o == nil {
		return failed(1, "Error from server (NotFound): nodes %q not found", name)
	}
	var value any
	if on {
		value = true
	}
	k.settle(mergePatch(o, Object{"spec": Object{"unschedulable": value}}))
	return prints("node/%s %scordoned\n", name, map[bool]string{true: "", false: "un"}[on])
}

// settle stores a node, with the taint of the node controller if it is cordoned, and schedules
// pods.
func (k *Kube) settle(o Object) {
	taints, _ := at(o, "spec", "taints").([]any)
	taints = slices.DeleteFunc(slices.Clone(taints), func(t any) bool { return word(t, "key") == unschedulable })
	if at(o, "spec", "unschedulable") == true {
		taints = append(taints, Object{"key": unschedulable, "effect": "NoSchedule"})
	}
	var value any = taints
	if len(taints) == 0 {
		value = nil
	}
	k.put(mergePatch(o, Object{"spec": Object{"taints": value}}))
	k.schedule()
}

// drainFlags are the flags of kubectl drain that are simulated, with those of every command.
var drainFlags = []string{"--kubeconfig", "--cache-dir", "--request-timeout", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--disable-eviction", "--timeout", "--skip-wait-for-delete-timeout"}

// drain implements `kubectl drain`. A timeout passes at once.
func (k *Kube) drain(c call) connector.Result {
	for f := range c.flags {
		if !slices.Contains(drainFlags, f) {
			return failed(1, "error: unknown flag: %s", f)
		}
	}
	timeout, err := time.ParseDuration(c.flags["--timeout"])
	if err != nil || timeout <= 0 {
		return failed(1, "kube: kubectl drain waits without limit")
	}
	if len(c.words) != 2 {
		return failed(1, "error: USAGE: drain NODE [flags]")
	}
	node := c.words[1]
	if res := k.cordon(node, true); res.Exit != 0 {
		return res
	}
	pods, refused := k.toDrain(node, c.flags)
	if len(refused) > 0 {
		return failed(1, "error: unable to drain node %q due to error: [%s], continuing command...\nThere are pending nodes to be drained:\n %s\n%s", node, strings.Join(refused, ", "), node, strings.Join(refused, "\n"))
	}
	_, forced := c.flags["--disable-eviction"]
	var said, errs []string
	for again := true; again; { // another pod may be ready meanwhile, and the budget allows the next eviction
		again, said, errs = false, nil, nil
		for _, p := range pods {
			ns, name := word(p, "metadata", "namespace"), word(p, "metadata", "name")
			now := k.named("v1", "Pod", ns, name)
			if now == nil || word(now, "spec", "nodeName") != node {
				continue
			}
			about := fmt.Sprintf("error when evicting pods/%q -n %q", name, ns)
			why, code := "", 0
			if forced {
				k.remove(now)
			} else {
				why, code = k.evict(now, false)
			}
			switch {
			case code == 429:
				said = append(said, about+" (will retry after 5s): "+why)
				errs = append(errs, fmt.Sprintf("%s: global timeout reached: %s", about, timeout))
			case code != 0:
				errs = append(errs, about+": "+why)
			case k.lingers(now):
				errs = append(errs, fmt.Sprintf("error when waiting for pod %q in namespace %q to terminate: global timeout reached: %s", name, ns, timeout))
			default:
				again = true
			}
		}
	}
	if len(errs) > 0 {
		all := strings.Join(errs, ", ")
		return failed(1, "%s\nerror: unable to drain node %q due to error: [%s], continuing command...\nThere are pending nodes to be drained:\n %s\n%s", strings.Join(said, "\n"), node, all, node, strings.Join(errs, "\n"))
	}
	return prints("node/%s drained\n", node)
}

// toDrain returns the pods of a node that kubectl drain evicts, and why it refuses to begin.
func (k *Kube) toDrain(node string, flags map[string]string) (pods []Object, refused []string) {
	_, ignore := flags["--ignore-daemonsets"]
	_, empty := flags["--delete-emptydir-data"]
	_, force := flags["--force"]
	why := map[string][]string{}
	for _, p := range k.pods(node) {
		kind, _ := controller(p)
		volumes, _ := at(p, "spec", "volumes").([]any)
		local := slices.ContainsFunc(volumes, func(v any) bool { return at(v, "emptyDir") != nil })
		switch {
		case at(p, "metadata", "annotations", "kubernetes.io/config.mirror") != nil:
		case finished(p):
			pods = append(pods, p)
		case kind == "DaemonSet" && !ignore:
			why["cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"] = append(why["cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"], podName(p))
		case kind == "DaemonSet":
		case local && !empty:
			why["cannot delete Pods with local storage (use --delete-emptydir-data to override)"] = append(why["cannot delete Pods with local storage (use --delete-emptydir-data to override)"], podName(p))
		case kind == "" && !force:
			why["cannot delete Pods that declare no controller (use --force to override)"] = append(why["cannot delete Pods that declare no controller (use --force to override)"], podName(p))
		default:
			pods = append(pods, p)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(why)) {
		refused = append(refused, text+": "+strings.Join(why[text], ", "))
	}
	return pods, refused
}

// evict evicts a pod as the eviction API does, and returns the message and the code of its
// refusal.
func (k *Kube) evict(p Object, dryRun bool) (string, int) {
	if word(p, "metadata", "deletionTimestamp") == "" && word(p, "status", "phase") == "Running" {
		var own []Object
		for _, b := range k.all("PodDisruptionBudget") {
			if covers(b, p) {
				own = append(own, k.budget(b))
			}
		}
		switch {
		case len(own) > 1:
			return twoBudgets, 500
		case len(own) == 1 && !podReady(p) && number(own[0], "currentHealthy") >= number(own[0], "desiredHealthy") && number(own[0], "desiredHealthy") > 0:
		case len(own) == 1 && number(own[0], "disruptionsAllowed") <= 0:
			return overBudget, 429
		}
	}
	if !dryRun {
		k.remove(p)
	}
	return "", 0
}

func number(budget Object, field string) float64 {
	n, ok := at(budget, "status", field).(float64)
	if !ok {
		return 0
	}
	return n
}

// eviction implements `kubectl create --raw` of an eviction. It returns false for another URL.
func (k *Kube) eviction(raw string, body []byte) (connector.Result, bool) {
	u, err := url.Parse(raw)
	if err != nil {
		return failed(1, "error: --raw must be a valid URL path"), true
	}
	part := strings.Split(u.Path, "/")
	if len(part) != 8 || part[3] != "namespaces" || part[5] != "pods" || part[7] != "eviction" {
		return connector.Result{}, false
	}
	ns, name := part[4], part[6]
	bad := func(format string, args ...any) (connector.Result, bool) {
		return failed(1, "Error from server (BadRequest): "+format, args...), true
	}
	var o Object
	if err := json.Unmarshal(body, &o); err != nil {
		return bad("couldn't get version/kind; json parse error: %v", err)
	}
	inBody, _ := at(o, "deleteOptions", "dryRun").([]any)
	inURL := u.Query()["dryRun"]
	switch {
	case word(o, "kind") != "Eviction" || !slices.Contains([]string{"policy/v1", "policy/v1beta1"}, word(o, "apiVersion")):
		return bad("no kind %q is registered for version %q", word(o, "kind"), word(o, "apiVersion"))
	case word(o, "metadata", "name") != name:
		return bad("name in URL does not match name in Eviction object")
	case word(o, "metadata", "namespace") != "" && word(o, "metadata", "namespace") != ns:
		return bad("the namespace of the provided object does not match the namespace sent on the request")
	case len(inURL) > 0 && !slices.Equal(inURL, []string{"All"}), len(inBody) > 0 && !slices.Equal(inBody, []any{"All"}):
		return failed(1, "Error from server (Invalid): dryRun: Unsupported value: supported values: \"All\""), true
	}
	p := k.named("v1", "Pod", ns, name)
	if p == nil {
		return failed(1, "Error from server (NotFound): pods %q not found", name), true
	}
	why, code := k.evict(p, len(inURL)+len(inBody) > 0)
	switch code {
	case 429:
		return failed(1, "Error from server (TooManyRequests): %s", why), true
	case 500: // the API server answers 201, and kubectl succeeds
		return prints(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"code":500}`, why), true
	}
	return prints(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}`), true
}

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
	if s == nil || s.Read("/etc/kubernetes/manifests/kube-apiserver.yaml") == "" || !slices.Contains(staticPods, part) || part == "etcd" && !k.stacked() {
		return false
	}
	return !slices.Contains(k.Unhealthy, part+"-"+host) && (k.stands || k.engineRuns(s))
}

// sandboxID returns the sandbox ID of a static pod, which changes with each start.
func (k *Kube) sandboxID(host, part string) string {
	return fmt.Sprintf("sandbox-%d-%s-%s", k.started[part+"-"+host], part, host)
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

// voters returns the etcd members, stacked or as services.
func (k *Kube) voters() []string {
	if !k.stacked() {
		return k.members()
	}
	var out []string
	for _, m := range k.all("EtcdMember") {
		out = append(out, word(m, "metadata", "name"))
	}
	return out
}

// answers reports whether an etcd member answers reads.
func (k *Kube) answers(member string) bool {
	if slices.Contains(k.Unhealthy, "etcd-"+member) {
		return false
	}
	if k.stacked() {
		return k.podRuns(member, "etcd")
	}
	return k.runs(member)
}

// Leader returns the etcd leader, which always answers.
func (k *Kube) Leader() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leading()
}

func (k *Kube) leading() string {
	all := k.voters()
	if slices.Contains(all, k.leader) && k.answers(k.leader) {
		return k.leader
	}
	k.leader = ""
	for _, m := range all {
		if k.answers(m) {
			k.leader = m
			break
		}
	}
	return k.leader
}

// elect elects another leader if the stopped member was the leader, and counts it in
// Elections.
func (k *Kube) elect(stopped string) {
	if k.leading() != stopped || len(k.voters()) < 2 {
		return
	}
	k.Elections++
	for _, m := range k.voters() {
		if m != stopped && k.answers(m) {
			k.leader = m
			return
		}
	}
}

// askedStore simulates the etcdctl commands for the entire cluster. It returns false for
// other commands.
func (k *Kube) askedStore(words []string, flags map[string]string) (connector.Result, bool) {
	_, whole := flags["--cluster"]
	switch {
	case len(words) > 1 && words[0] == "endpoint" && words[1] == "health" && whole:
		var bad []string
		for _, m := range k.voters() {
			if !k.answers(m) || k.Learner == m {
				bad = append(bad, fmt.Sprintf("https://%s:2379 is unhealthy: failed to commit proposal: context deadline exceeded", k.address(m)))
			}
		}
		if len(bad) > 0 {
			return failed(1, "%s\nError: unhealthy cluster", strings.Join(bad, "\n")), true
		}
		return prints("all are healthy\n"), true
	case len(words) > 1 && words[0] == "endpoint" && words[1] == "status":
		var rows []string
		leader := k.leading()
		silent := ""
		for _, m := range k.voters() {
			if !k.answers(m) {
				silent += "Failed to get the status of endpoint https://" + k.address(m) + ":2379 (context deadline exceeded)\n"
				continue
			}
			alarms := ""
			if k.Alarm != "" {
				alarms = fmt.Sprintf(`,"errors":[%q]`, k.Alarm)
			}
			rows = append(rows, fmt.Sprintf(`{"Endpoint":"https://%s:2379","Status":{"header":{"cluster_id":1,"member_id":%d},"version":"3.5.16","dbSize":20971520,"dbSizeInUse":10485760,"leader":%d,"raftTerm":2,"raftAppliedIndex":12%s}}`,
				k.address(m), memberNumber(m), memberNumber(leader), alarms))
		}
		if silent != "" {
			return connector.Result{Exit: 1, Stdout: []byte("[" + strings.Join(rows, ",") + "]\n"), Stderr: []byte(silent)}, true
		}
		return prints("[%s]\n", strings.Join(rows, ",")), true
	case len(words) == 2 && words[0] == "move-leader":
		leader := k.leading()
		if flags["--endpoints"] != "https://"+k.address(leader)+":2379" {
			return failed(128, "Error: no leader endpoint given at [%s]", flags["--endpoints"]), true
		}
		for _, m := range k.voters() {
			if memberID(m) == words[1] {
				k.leader = m
				return prints("Leadership transferred from %s to %s\n", memberID(leader), words[1]), true
			}
		}
		return failed(1, "Error: etcdserver: bad leader transferee"), true
	}
	return connector.Result{}, false
}

// learner returns the additional JSON of a learner in the list of members.
func (k *Kube) learner(member string) string {
	if k.Learner == member {
		return `"isLearner":true,`
	}
	return ""
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

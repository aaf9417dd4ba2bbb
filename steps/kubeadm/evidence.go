package kubeadm

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/runner"
)

// parts are the containers that kubeadm starts by files, in the order in which
// they need each other.
var parts = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// container is one of a part of the control plane.
type container struct {
	ID        string
	State     string
	CreatedAt string // nanoseconds
	Metadata  struct{ Name string }
}

func (c container) runs() bool { return c.State == "CONTAINER_RUNNING" }

// newest gives the last container of each name that the runtime of a node knows; none
// where it does not say.
func newest(ctx context.Context, h *steps.Host) map[string]container {
	var list struct{ Containers []container }
	out, err := h.Exec(ctx, "crictl", "ps", "-a", "-o", "json")
	if err != nil || json.Unmarshal(out, &list) != nil {
		return nil
	}
	last, made := map[string]container{}, map[string]int64{}
	for _, c := range list.Containers {
		if at, _ := strconv.ParseInt(c.CreatedAt, 10, 64); at > made[c.Metadata.Name] {
			last[c.Metadata.Name], made[c.Metadata.Name] = c, at
		}
	}
	return last
}

// deadContainer gives the first part of the control plane that has ended and was
// not followed by one that runs, with its last words.
func deadContainer(ctx context.Context, h *steps.Host) (name, words string) {
	all := newest(ctx, h)
	for _, part := range parts {
		c, ok := all[part]
		if !ok || c.runs() {
			continue
		}
		log, err := h.Merged(ctx, "crictl", "logs", "--tail", "30", c.ID)
		if err != nil {
			return "", ""
		}
		return part, lastWords(string(log))
	}
	return "", ""
}

var (
	klogErr = regexp.MustCompile(`\berr(?:or)?="((?:[^"\\]|\\.)*)"`)
	sender  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+ \S+ \S+\[\d+\]: `)
	// complaint is a line that a program ends with, or systemd's own of it.
	complaint = regexp.MustCompile(`(?i)\b(error|fatal|panic|failed|unknown flag|invalid|exited)\b`)
)

// message is a line of a journal without its time, host and sender.
func message(line string) string {
	if m := sender.FindStringIndex(line); m != nil {
		line = line[m[1]:]
	}
	return strings.TrimSpace(line)
}

// lastWords picks out of a log the line that says best why its program ended;
// "" where it says nothing.
func lastWords(log string) string {
	lines := slices.DeleteFunc(strings.Split(log, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	slices.Reverse(lines)
	for _, l := range lines {
		if m := klogErr.FindStringSubmatch(l); m != nil {
			return strings.ReplaceAll(m[1], `\"`, `"`)
		}
	}
	for _, l := range lines {
		// Others tell what came of it: "Failed with result 'exit-code'".
		if complaint.MatchString(l) && !strings.Contains(l, "Failed with result") && !strings.Contains(l, "Failed to start") {
			return message(l)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return message(lines[0])
}

// endpointAway says why the endpoint does not lead to the API server that runs on a
// master; "" where it does, or where none runs. kubeadm asks at the endpoint alone, and
// takes the kubelet for the culprit.
func endpointAway(ctx context.Context, h *steps.Host) string {
	c := h.Cluster
	if !part.EndpointOf(c).Exists() {
		return ""
	}
	if server, ok := newest(ctx, h)["kube-apiserver"]; !ok || !server.runs() {
		return ""
	}
	ca, err := h.ReadFile(ctx, controlplane.AuthorityFile)
	if err != nil {
		return ""
	}
	err = controlplane.TryEndpoint(ctx, h, c, ca)
	if err == nil || errors.Is(err, runner.ErrNoForward) || errors.Is(err, runner.ErrNoTCP) {
		return ""
	}
	return "the API server of " + h.Name + " runs, and is not reached at " + part.EndpointOf(c).At() + ", spec.controlPlaneEndpoint: " + err.Error()
}

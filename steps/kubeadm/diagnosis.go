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

// parts are the containers of kubeadm's static pods, each after those that it depends on.
var parts = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// container is a container of the control plane.
type container struct {
	ID        string
	State     string
	CreatedAt string // nanoseconds
	Metadata  struct{ Name string }
}

func (c container) runs() bool { return c.State == "CONTAINER_RUNNING" }

// newest returns the last container of each name in the runtime of a node; nil if crictl
// fails.
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

// deadContainer returns the name of the first container of the control plane that has
// exited without a successor that runs, and the most relevant line of its log.
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
		return part, lastError(string(log))
	}
	return "", ""
}

var (
	klogErr = regexp.MustCompile(`\berr(?:or)?="((?:[^"\\]|\\.)*)"`)
	sender  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+ \S+ \S+\[\d+\]: `)
	// complaint matches the last error line of a program, or systemd's message about it.
	complaint = regexp.MustCompile(`(?i)\b(error|fatal|panic|failed|unknown flag|invalid|exited)\b`)
)

// message returns a line of a journal without its time, host and sender.
func message(line string) string {
	if m := sender.FindStringIndex(line); m != nil {
		line = line[m[1]:]
	}
	return strings.TrimSpace(line)
}

// lastError returns the line of a log that most likely explains why its program exited; ""
// if the log is empty.
func lastError(log string) string {
	lines := slices.DeleteFunc(strings.Split(log, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	slices.Reverse(lines)
	for _, l := range lines {
		if m := klogErr.FindStringSubmatch(l); m != nil {
			return strings.ReplaceAll(m[1], `\"`, `"`)
		}
	}
	for _, l := range lines {
		// These lines only report the consequence: "Failed with result 'exit-code'".
		if complaint.MatchString(l) && !strings.Contains(l, "Failed with result") && !strings.Contains(l, "Failed to start") {
			return message(l)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return message(lines[0])
}

// endpointError describes why the API server that runs on a master is not reached at the
// endpoint; "" if it is, or if no API server runs. kubeadm connects only to the endpoint,
// and reports the failure as one of the kubelet.
func endpointError(ctx context.Context, h *steps.Host) string {
	c := h.Cluster
	if !part.EndpointOf(c).Balanced() {
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
	return "the API server of " + h.Name + " runs, but cannot be reached at " + part.EndpointOf(c).At() + " (spec.controlPlaneEndpoint): " + err.Error()
}

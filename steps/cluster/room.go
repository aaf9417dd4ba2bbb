package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
)

// roomRows has kubectl print one line for each node, with the fields of parseRoom between tabs.
const roomRows = `go-template={{range .items}}{{.metadata.name}}{{"\t"}}{{with .spec.unschedulable}}{{.}}{{end}}{{"\t"}}` +
	`{{range .status.conditions}}{{if eq .type "Ready"}}{{.status}}{{end}}{{end}}{{"\t"}}` +
	`{{range .spec.taints}}{{.effect}} {{end}}{{"\t"}}{{with .status.allocatable}}{{.cpu}}/{{.memory}}/{{.pods}}{{end}}{{"\t"}}` +
	`{{range $key, $value := .metadata.annotations}}{{if eq $key "` + beforeDrain + `"}}{{$value}}{{end}}{{end}}{{"\n"}}{{end}}`

// room is a node as a place for pods.
type room struct {
	name        string
	takes       bool // pods without tolerations are scheduled on it
	drained     bool // DrainNode cordoned it
	allocatable resources
}

// parseRoom parses a line of roomRows.
func parseRoom(line string) (room, error) {
	f := strings.Split(line, "\t")
	if len(f) != 6 || f[0] == "" {
		return room{}, fmt.Errorf("kubectl get nodes: unexpected output %q", line)
	}
	tainted := strings.Contains(f[3], "NoSchedule") || strings.Contains(f[3], "NoExecute")
	requests, pods, _ := cutLast(f[4])
	n := room{name: f[0], takes: f[1] != "true" && f[2] == "True" && !tainted, drained: f[5] != "", allocatable: parseRequests(requests)}
	n.allocatable.pods = quantity(pods)
	return n, nil
}

// cutLast cuts text at the last slash.
func cutLast(text string) (before, after string, found bool) {
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

func listRooms(ctx context.Context, h *steps.Host) ([]room, error) {
	out, err := list(ctx, h, "get", "nodes", "-o", roomRows)
	if err != nil {
		return nil, err
	}
	var all []room
	for line := range strings.Lines(out) {
		n, err := parseRoom(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// roomFindings compares what evicted pods request with what the other nodes have free. Nodes
// that return are drained one after another; nodes that leave need room for the pods of all.
func (r *rehearsal) roomFindings() steps.Findings {
	if r.Permanent {
		return r.noRoom(r.names)
	}
	var out steps.Findings
	for _, name := range r.names {
		out = append(out, r.noRoom([]string{name})...)
	}
	return out
}

// noRoom returns a finding if the pods of some nodes find no room on the others.
func (r *rehearsal) noRoom(away []string) steps.Findings {
	var need, free resources
	for _, p := range r.pods {
		if slices.Contains(away, p.node) && p.evicted() && p.controller != "" && !p.finished() && !p.terminating() {
			need = need.plus(p.requests)
		}
	}
	others := 0
	for _, n := range r.nodes {
		if !n.takes || slices.Contains(away, n.name) {
			continue
		}
		others++
		left := n.allocatable
		for _, p := range r.pods {
			if p.node == n.name && !p.finished() {
				left = left.minus(p.requests)
			}
		}
		free = free.plus(resources{max(left.cpu, 0), max(left.memory, 0), max(left.pods, 0)})
	}
	short := free.shortOf(need)
	if need.pods == 0 || len(short) == 0 {
		return nil
	}
	f := steps.Finding{
		Host: away[0], Warning: !r.Permanent || r.Force,
		What:   fmt.Sprintf("the pods of %s request more than the other schedulable nodes (%d) have free: %s", strings.Join(away, ", "), others, strings.Join(short, ", ")),
		Advice: "some pods stay Pending until the node is schedulable again; scale workloads down, or add a node",
	}
	if r.Permanent {
		f.Advice = "some pods would stay Pending; add a node, or scale workloads down"
	}
	return steps.Findings{f}
}

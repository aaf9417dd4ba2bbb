package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// RehearseDrain checks, before the first change, whether nodes can be drained. The API server
// evaluates the eviction of each pod in a dry run. Errors are pods that the drain could not
// evict, and pods without a controller; with Force, warnings. Warnings are single replicas and pods
// that find no room on other nodes, notes local data. A run that continues an interrupted
// drain only warns about refused evictions, because that drain itself may have caused them.
// It runs on the lead.
func RehearseDrain(nodes []manifest.Host, o DrainOptions) steps.Step {
	limit := 5*time.Minute + time.Duration(len(nodes))*10*time.Second
	return op.Check("kubernetes.rehearse-drain", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		r := rehearsal{DrainOptions: o}
		for _, n := range nodes {
			r.names = append(r.names, n.Name)
		}
		return r.findings(ctx, h)
	}, func(m *steps.Meta) { m.Timeout = limit })
}

// rehearsal is the state of a cluster before a drain.
type rehearsal struct {
	DrainOptions
	names   []string // of the nodes to be drained
	nodes   []room
	pods    []pod
	budgets []budget
	begun   bool // by an interrupted run
}

func (r *rehearsal) findings(ctx context.Context, h *steps.Host) (out steps.Findings, err error) {
	if r.nodes, err = listRooms(ctx, h); err != nil {
		return nil, err
	}
	if r.pods, err = listPods(ctx, h, ""); err != nil {
		return nil, err
	}
	if r.budgets, err = listBudgets(ctx, h); err != nil {
		return nil, err
	}
	for _, n := range r.nodes {
		if !n.drained {
			continue
		}
		r.begun = true
		out = append(out, steps.Finding{Host: n.name, Note: true, What: "node " + n.name + " is cordoned by a drain that was interrupted"})
	}
	var all []pod // in the order of the nodes
	for _, name := range r.names {
		for _, p := range r.pods {
			if p.node == name && p.evicted() && !p.terminating() {
				all = append(all, p)
			}
		}
	}
	refusals, err := refusedEvictions(ctx, h, all)
	if err != nil {
		return nil, err
	}
	for i, p := range all {
		out = append(out, r.about(p, refusals[i])...)
	}
	return append(out, r.roomFindings()...), nil
}

// about returns the findings about a pod; refusal is the answer of the API server to its
// eviction, "" if that is allowed.
func (r *rehearsal) about(p pod, refusal string) steps.Findings {
	var out steps.Findings
	add := func(f steps.Finding) {
		f.Host = p.node
		f.What = fmt.Sprintf("pod %s (%s): %s", p, cmp.Or(p.controller, "no controller"), f.What)
		out = append(out, f)
	}
	if p.unmanaged() {
		add(steps.Finding{What: "nothing starts it again on another node", Warning: r.Force, Advice: "delete the pod, or specify --force-drain to evict it for good"})
	}
	if refusal != "" {
		advice := "wait until its pods are healthy, or change the PodDisruptionBudget or the number of replicas; --force-drain deletes pods that are left after --drain-timeout"
		add(steps.Finding{What: "its eviction is refused: " + cmp.Or(p.heldBy(r.budgets), refusal), Warning: r.Force || r.begun, Advice: advice})
	}
	if p.finished() {
		return out
	}
	if p.controller != "" && r.alone(p) {
		add(steps.Finding{What: "it is the only replica, and is missing until it runs on another node", Warning: true, Advice: "add a replica before, or accept the gap"})
	}
	var local []string
	if p.emptyDir {
		local = append(local, "the content of its emptyDir volumes is deleted")
	}
	if p.hostPath {
		local = append(local, "its hostPath data stays on the node")
	}
	if len(local) > 0 {
		add(steps.Finding{What: strings.Join(local, "; "), Note: true, Advice: "copy what is needed before"})
	}
	return out
}

// alone reports whether no other pod has the same controller.
func (r *rehearsal) alone(p pod) bool {
	return !slices.ContainsFunc(r.pods, func(o pod) bool {
		return o.namespace == p.namespace && o.controller == p.controller && o.name != p.name && !o.finished() && !o.terminating()
	})
}

// refusedEvictions has the API server evaluate the eviction of each pod, and returns the
// reasons for which it refuses; "" if it does not.
func refusedEvictions(ctx context.Context, h *steps.Host, pods []pod) ([]string, error) {
	out := make([]string, len(pods))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, p := range pods {
		g.Go(func() (err error) {
			out[i], err = refusedEviction(ctx, h, p)
			return err
		})
	}
	return out, g.Wait()
}

// refusedEviction returns why the API server refuses the eviction of a pod; "" if it does not,
// or if the pod no longer exists.
func refusedEviction(ctx context.Context, h *steps.Host, p pod) (string, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]string{"namespace": p.namespace, "name": p.name},
		"deleteOptions": map[string]any{"dryRun": []string{"All"}},
	})
	if err != nil {
		return "", err
	}
	// The parameter tells admission webhooks, too, that this is a dry run.
	url := "/api/v1/namespaces/" + p.namespace + "/pods/" + p.name + "/eviction?dryRun=All"
	res, err := h.Run(ctx, runner.Cmd{Argv: op.Kubectl(kubectl.AdminConf, "--request-timeout=30s", "create", "--raw", url, "-f", "-"), Stdin: strings.NewReader(string(body))})
	if cmd, ok := errors.AsType[*runner.CmdError](err); ok {
		reason, said := serverError(cmd.Stderr)
		switch reason {
		case "":
			return "", err // kubectl has no answer of the API server
		case "NotFound":
			return "", nil
		}
		return said, nil
	}
	if err != nil {
		return "", err
	}
	// For a pod with two budgets the API server answers 201 with a Status that is a failure.
	var status struct{ Status, Message string }
	if err := json.Unmarshal(res.Stdout, &status); err != nil {
		return "", fmt.Errorf("eviction of pod %s: %w", p, err)
	}
	if status.Status == "Failure" {
		return cmp.Or(status.Message, "without a reason"), nil
	}
	return "", nil
}

// serverError returns the reason and the message of an error that the API server answered, from
// what kubectl printed: "Error from server (NotFound): pods "x" not found".
func serverError(stderr string) (reason, message string) {
	_, rest, ok := strings.Cut(stderr, "Error from server")
	if !ok {
		return "", ""
	}
	rest = strings.TrimSpace(rest)
	if in, after, ok := strings.Cut(rest, "): "); ok && strings.HasPrefix(in, "(") {
		return in[1:], after
	}
	return "Unknown", strings.TrimPrefix(rest, ": ")
}

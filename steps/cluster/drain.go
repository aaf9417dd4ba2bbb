package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// DefaultDrainTimeout is how long the evictions of one node may take by default.
const DefaultDrainTimeout = 10 * time.Minute

// DrainOptions configure the drain of nodes.
type DrainOptions struct {
	Timeout time.Duration // for the evictions of one node; 0 means DefaultDrainTimeout
	// Force also evicts pods without a controller, which nothing starts again, and deletes the
	// pods that are left after Timeout, whatever their PodDisruptionBudgets allow.
	Force bool
	// Permanent is for nodes that leave the cluster: pods that find no room on the remaining
	// nodes are an error of the rehearsal, not a warning.
	Permanent bool
}

const (
	// evictInterval is the duration of one call of kubectl drain, and the time between two
	// reports.
	evictInterval = 10 * time.Second
	// deleteTimeout is how long pods that DrainOptions.Force deletes may take to end.
	deleteTimeout = 5 * time.Minute
	// brokenConnections is how many times in a row the connection to the lead may be broken.
	brokenConnections = 6
)

// DrainNode marks a node as unschedulable and evicts its pods, except those of DaemonSets and
// static pods. It reports which pods are left and what holds them. The node records whether
// it was cordoned before, so that UncordonNode and the step's undo restore that state in a
// later run, too. A node that does not exist counts as drained. It runs on the lead.
func DrainNode(n manifest.Host, o DrainOptions) steps.Step {
	d := drain{node: n.Name, DrainOptions: o}
	d.Timeout = cmp.Or(o.Timeout, DefaultDrainTimeout)
	return &op.Do{
		M:    steps.Meta{Name: "kubernetes.drain-node", Risk: steps.Disruptive, Timeout: d.Timeout + deleteTimeout + 5*time.Minute},
		Done: d.done,
		Act:  d.run,
		Undo: func(ctx context.Context, h *steps.Host) error { return untilUncordoned(ctx, h, n.Name) },
	}
}

// drain is the drain of one node.
type drain struct {
	node string
	DrainOptions
}

// done reports whether the node was cordoned by kubexm and has no pods that a drain evicts.
func (d drain) done(ctx context.Context, h *steps.Host) (bool, error) {
	n, exists, err := findNode(ctx, h, d.node)
	switch {
	case runner.Refused(err):
		return false, nil
	case err != nil || !exists:
		return err == nil, err
	case n.beforeDrain() == "" || !n.Spec.Unschedulable:
		return false, nil
	}
	left, err := podsToEvict(ctx, h, d.node)
	if runner.Refused(err) {
		return false, nil
	}
	return err == nil && len(left) == 0, err
}

func (d drain) run(ctx context.Context, h *steps.Host) error {
	if err := cordon(ctx, h, d.node); err != nil {
		return err
	}
	args := []string{"--ignore-daemonsets", "--delete-emptydir-data", "--skip-wait-for-delete-timeout=0"}
	if d.Force {
		args = append(args, "--force")
	}
	left, err := d.evict(ctx, h, d.Timeout, args)
	if err != nil || len(left) == 0 {
		return err
	}
	if !d.Force {
		return steps.Advise(fmt.Errorf("node %s was not drained within %s; %s", d.node, d.Timeout, listed(left)),
			"resolve what holds these pods, such as unhealthy pods of the same PodDisruptionBudget, and run the same command again; --drain-timeout waits longer, --force-drain deletes the pods that are left")
	}
	if left, err = d.evict(ctx, h, deleteTimeout, append(args, "--disable-eviction")); err != nil || len(left) == 0 {
		return err
	}
	return steps.Advise(fmt.Errorf("deleted pods of node %s did not end within %s; %s", d.node, deleteTimeout, listed(left)),
		"check the kubelet of %s, and the finalizers and grace periods of these pods; then run the same command again", d.node)
}

// evict evicts the pods of the node by short calls of kubectl drain, until none is left or the
// timeout has passed, and returns those that are left. A broken connection ends one call only,
// and a later run continues where an interrupted one ended.
func (d drain) evict(ctx context.Context, h *steps.Host, timeout time.Duration, args []string) (left []heldPod, err error) {
	end := time.Now().Add(timeout)
	said := ""
	for broken := 0; ; {
		begin := time.Now()
		now, err := d.left(ctx, h, said)
		switch {
		case err == nil && len(now) == 0:
			return nil, nil
		case err == nil:
			left, broken = now, 0
			h.ReportWait("drain of node " + d.node + ": " + listed(left))
		case runner.OutOfReach(err) && broken < brokenConnections:
			broken++
		case !runner.Refused(err): // the API server may answer again
			return nil, err
		}
		rest := time.Until(end)
		if rest <= 0 && left == nil {
			return nil, err
		}
		if rest <= 0 {
			return left, nil
		}
		if err == nil {
			said, err = d.call(ctx, h, min(evictInterval, rest), args)
			if err == nil && said == "" { // all are evicted
				begin = time.Now().Add(time.Second - evictInterval)
			} else if err != nil && !runner.OutOfReach(err) {
				return nil, err
			}
		}
		if err := pause(ctx, time.Until(begin.Add(evictInterval))); err != nil {
			return nil, err
		}
	}
}

// left returns the pods that the drain has not evicted yet. said is what kubectl said of its
// last call. Without Force, pods without a controller are an error.
func (d drain) left(ctx context.Context, h *steps.Host, said string) ([]heldPod, error) {
	pods, err := podsToEvict(ctx, h, d.node)
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	budgets, err := listBudgets(ctx, h)
	if err != nil {
		return nil, err
	}
	var out []heldPod
	var unmanaged []string
	for _, p := range pods {
		if p.unmanaged() && !p.terminating() && !d.Force {
			unmanaged = append(unmanaged, p.String())
		}
		out = append(out, heldPod{p, cmp.Or(p.heldBy(budgets), refusalOf(p, said), "its eviction has not ended")})
	}
	if len(unmanaged) > 0 {
		return nil, steps.Advise(fmt.Errorf("node %s has pods without a controller, which nothing starts again: %s", d.node, strings.Join(unmanaged, ", ")),
			"delete these pods, or specify --force-drain; then run the same command again")
	}
	return out, nil
}

// call runs kubectl drain for some time. said is empty if all pods were evicted, and else what
// kubectl printed.
func (d drain) call(ctx context.Context, h *steps.Host, timeout time.Duration, args []string) (said string, err error) {
	timeout = max(timeout.Truncate(time.Second), time.Second) // kubectl waits without limit for 0
	ctx, cancel := context.WithTimeoutCause(ctx, timeout+time.Minute, errors.New("kubectl drain did not end"))
	defer cancel()
	_, err = kubectl.Run(ctx, h, append([]string{"--request-timeout=10s", "drain", d.node, "--timeout=" + timeout.String()}, args...)...)
	if cmd, ok := errors.AsType[*runner.CmdError](err); ok {
		return cmp.Or(cmd.Stderr, "kubectl drain failed"), nil
	}
	return "", err
}

// refusalOf returns what kubectl drain said about the eviction of a pod, without the refusals
// that it repeats.
func refusalOf(p pod, said string) string {
	about := fmt.Sprintf("error when evicting pods/%q -n %q: ", p.name, p.namespace)
	for line := range strings.Lines(said) {
		_, why, found := strings.Cut(line, about)
		why, _, _ = strings.Cut(why, ", error when ") // of another pod
		if found && !strings.Contains(why, "global timeout reached") {
			return strings.TrimSpace(why)
		}
	}
	return ""
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

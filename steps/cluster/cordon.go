package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// beforeDrain is the annotation of a node that kubexm drains: whether the node was schedulable
// before. It is set and removed together with spec.unschedulable, so that a later run knows
// whether to uncordon the node.
const beforeDrain = "kubexm.mensylisir.io/before-drain"

// The values of beforeDrain.
const (
	schedulable = "schedulable"
	cordoned    = "cordoned"
)

// UncordonNode makes a node schedulable that DrainNode drained in this run or an earlier one. A
// node that was cordoned before stays cordoned; a node that does not exist needs nothing. It
// runs on the lead.
func UncordonNode(n manifest.Host) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.uncordon-node", Timeout: 3 * time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			is, _, err := findNode(ctx, h, n.Name)
			if runner.Refused(err) {
				return false, nil
			}
			return err == nil && is.beforeDrain() == "", err
		},
		Act: func(ctx context.Context, h *steps.Host) error { return untilUncordoned(ctx, h, n.Name) },
	}
}

// UncordonOthers makes the nodes schedulable that an interrupted run drained, except some that
// are drained next: the pods of those need the room. It runs on the lead.
func UncordonOthers(except []manifest.Host) steps.Step {
	others := func(ctx context.Context, h *steps.Host) ([]string, error) {
		all, err := listRooms(ctx, h)
		var out []string
		for _, n := range all {
			if n.drained && !slices.ContainsFunc(except, func(e manifest.Host) bool { return e.Name == n.name }) {
				out = append(out, n.name)
			}
		}
		return out, err
	}
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.uncordon-others", Timeout: 5 * time.Minute, Retry: steps.Retry{Times: 5, Wait: 3 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			left, err := others(ctx, h)
			if runner.Refused(err) {
				return false, nil
			}
			return err == nil && len(left) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			left, err := others(ctx, h)
			for _, name := range left {
				err = errors.Join(err, uncordon(ctx, h, name))
			}
			return err
		},
	}
}

// untilUncordoned is uncordon, repeated while the API server does not answer: it may be the one
// that was restarted.
func untilUncordoned(ctx context.Context, h *steps.Host, name string) error {
	err := steps.Until(ctx, 2*time.Minute, 3*time.Second, func(ctx context.Context) error { return uncordon(ctx, h, name) })
	return steps.Advise(err, "run the same command again when the API server answers, or kubectl uncordon %s", name)
}

// uncordon restores the state before a drain.
func uncordon(ctx context.Context, h *steps.Host, name string) error {
	n, _, err := findNode(ctx, h, name)
	if err != nil {
		return err
	}
	switch n.beforeDrain() {
	case "":
		return nil
	case cordoned:
		return patchNode(ctx, h, name, map[string]any{"metadata": annotated(nil)})
	}
	return patchNode(ctx, h, name, map[string]any{"metadata": annotated(nil), "spec": map[string]any{"unschedulable": nil}})
}

// cordon makes a node unschedulable, and records whether it was schedulable.
func cordon(ctx context.Context, h *steps.Host, name string) error {
	n, exists, err := findNode(ctx, h, name)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("node %s does not exist", name)
	}
	before := schedulable
	switch {
	case n.Spec.Unschedulable && n.beforeDrain() != "":
		return nil // by an interrupted run
	case n.Spec.Unschedulable:
		before = cordoned
	}
	return patchNode(ctx, h, name, map[string]any{"metadata": annotated(before), "spec": map[string]any{"unschedulable": true}})
}

func annotated(value any) map[string]any {
	return map[string]any{"annotations": map[string]any{beforeDrain: value}}
}

// patchNode applies a merge patch to a node; null removes a field.
func patchNode(ctx context.Context, h *steps.Host, name string, patch map[string]any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = kubectl.Run(ctx, h, "--request-timeout=10s", "patch", "node", name, "--type=merge", "-p", string(text))
	return err
}

// findNode returns a node, and whether it exists.
func findNode(ctx context.Context, h *steps.Host, name string) (n node, exists bool, err error) {
	out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "get", "node", name, "--ignore-not-found", "-o", "json")
	if err != nil || out == "" {
		return node{}, false, err
	}
	if err := json.Unmarshal([]byte(out), &n); err != nil {
		return node{}, false, fmt.Errorf("node %s: %w", name, err)
	}
	return n, true, nil
}

// beforeDrain returns whether a drained node was schedulable before; "" if kubexm did not drain
// it.
func (n node) beforeDrain() string { return n.Metadata.Annotations[beforeDrain] }

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
)

// budget holds the fields of a PodDisruptionBudget that a drain reads.
type budget struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Selector *selector `json:"selector"`
	} `json:"spec"`
	Status struct {
		DisruptionsAllowed int `json:"disruptionsAllowed"`
		CurrentHealthy     int `json:"currentHealthy"`
		DesiredHealthy     int `json:"desiredHealthy"`
	} `json:"status"`
}

// selector is a label selector of the Kubernetes API.
type selector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	} `json:"matchExpressions"`
}

// matches reports whether labels match the selector. As in policy/v1, an empty selector matches
// everything, and a missing one nothing.
func (s *selector) matches(labels map[string]string) bool {
	if s == nil {
		return false
	}
	for key, value := range s.MatchLabels {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		value, ok := labels[e.Key]
		in := slices.Contains(e.Values, value)
		fits := map[string]bool{"In": ok && in, "NotIn": !ok || !in, "Exists": ok, "DoesNotExist": !ok}
		if !fits[e.Operator] {
			return false
		}
	}
	return true
}

// listBudgets returns the PodDisruptionBudgets of the cluster.
func listBudgets(ctx context.Context, h *steps.Host) ([]budget, error) {
	out, err := list(ctx, h, "get", "poddisruptionbudgets", "-A", "-o", "json")
	if err != nil {
		return nil, err
	}
	var all struct{ Items []budget }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return nil, fmt.Errorf("kubectl get poddisruptionbudgets: %w", err)
	}
	return all.Items, nil
}

// budgetsOf returns the budgets that cover a pod.
func (p pod) budgetsOf(all []budget) []budget {
	var out []budget
	for _, b := range all {
		if b.Metadata.Namespace == p.namespace && b.Spec.Selector.matches(p.labels) {
			out = append(out, b)
		}
	}
	return out
}

// heldBy returns what holds a pod on its node, as far as that is visible in the objects; "" if
// nothing does. The eviction API evicts no pod that two budgets cover.
func (p pod) heldBy(all []budget) string {
	if p.terminating() {
		return fmt.Sprintf("is being deleted, with a grace period of %s s", p.grace)
	}
	own := p.budgetsOf(all)
	switch {
	case p.finished():
		return ""
	case len(own) > 1:
		return fmt.Sprintf("PodDisruptionBudgets %s and %s both cover it, and a pod with two is not evicted", own[0].Metadata.Name, own[1].Metadata.Name)
	case len(own) == 1 && own[0].Status.DisruptionsAllowed == 0:
		return own[0].refusal()
	}
	return ""
}

// refusal describes a budget that allows no disruption.
func (b budget) refusal() string {
	return fmt.Sprintf("PodDisruptionBudget %s allows no disruption: it requires %d healthy pods, %d are healthy", b.Metadata.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy)
}

// heldPod is a pod that is left on a node, and what holds it.
type heldPod struct {
	pod
	why string
}

// mostListed is how many pods a message lists.
const mostListed = 5

// listed describes the pods that are left.
func listed(left []heldPod) string {
	var out []string
	for _, p := range left[:min(mostListed, len(left))] {
		out = append(out, p.String()+" ("+p.why+")")
	}
	text := fmt.Sprintf("%d pods are left: %s", len(left), strings.Join(out, ", "))
	if len(left) == 1 {
		text = "1 pod is left: " + out[0]
	}
	if more := len(left) - mostListed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

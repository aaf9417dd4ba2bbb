package kubectl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// DefaultTimeout is the timeout of Until and WaitFor.
const DefaultTimeout = 5 * time.Minute

// WaitFor returns a step that waits until the Deployments, DaemonSets, StatefulSets and Jobs
// of a manifest are ready.
func WaitFor(name string, needs []manifest.Need, body Body) steps.Step {
	check := func(ctx context.Context, h *steps.Host) (string, error) {
		text, err := body(ctx, h)
		if err != nil {
			return "", err
		}
		all, err := op.Workloads(text)
		if err != nil {
			return "", err
		}
		for _, w := range all {
			if bad, err := Unready(ctx, h, w); bad != "" || err != nil {
				return bad, err
			}
		}
		return "", nil
	}
	return &op.Do{
		M: steps.Meta{Name: name, Needs: needs, ReadOnly: true, Timeout: DefaultTimeout + time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			bad, err := check(ctx, h)
			return err == nil && bad == "", err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			return Until(ctx, h, check, "run kubectl get pods -A -o wide on %s, and kubectl describe for pods that are not ready; add a missing image to spec.bundle.images")
		},
	}
}

// reportInterval is how long a wait takes until it reports what is missing, and between reports.
const reportInterval = 10 * time.Second

// Until calls check every 2 s until it returns "", or DefaultTimeout has passed, and reports what it
// waits for. The error is what check returned last. advice must have a verb for the name of the host.
func Until(ctx context.Context, h *steps.Host, check func(context.Context, *steps.Host) (string, error), advice string) error {
	message, reported := "", time.Now()
	return steps.Until(ctx, DefaultTimeout, 2*time.Second, func(ctx context.Context) error {
		bad, err := check(ctx, h)
		if now := time.Now(); err == nil && bad != "" && bad != message && now.Sub(reported) >= reportInterval {
			h.ReportWait(bad)
			message, reported = bad, now
		}
		if err == nil && bad != "" {
			err = steps.Advise(errors.New(bad), advice, h.Name)
		}
		return err
	})
}

// workload has the fields of such an object that are read. Its status has those of all
// kinds.
type workload struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration     int64                           `json:"observedGeneration"`
		Replicas               int                             `json:"replicas"` // including old ones
		ReadyReplicas          int                             `json:"readyReplicas"`
		UpdatedReplicas        int                             `json:"updatedReplicas"`
		DesiredNumberScheduled int                             `json:"desiredNumberScheduled"`
		NumberReady            int                             `json:"numberReady"`
		UpdatedNumberScheduled int                             `json:"updatedNumberScheduled"`
		Conditions             []struct{ Type, Status string } `json:"conditions"`
		Succeeded              int                             `json:"succeeded"`
	} `json:"status"`
}

// Unready describes what a workload is still missing; "" if it is ready.
func Unready(ctx context.Context, h *steps.Host, w op.Workload) (string, error) {
	name := w.Kind + "/" + w.Name
	out, err := Run(ctx, h, "--request-timeout=10s", "-n", w.Namespace, "get", strings.ToLower(name), "-o", "json")
	if runner.Refused(err) {
		return fmt.Sprintf("%s in namespace %s does not exist", name, w.Namespace), nil
	}
	if err != nil {
		return "", err
	}
	var o workload
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	have, want := o.progress(w.Kind)
	if w.Kind == "DaemonSet" { // its pods on hosts that the run leaves out are desired, but not ready
		want = max(want-len(h.Away), 0)
	}
	if have >= want && (w.Kind == "Job" || o.Status.ObservedGeneration >= o.Metadata.Generation) {
		return "", nil
	}
	why, err := reasons(ctx, h, w.Namespace)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s in namespace %s: %d of %d ready%s", name, w.Namespace, have, want, why), nil
}

// progress returns how many pods are up to date and ready, and how many are desired.
func (o workload) progress(kind string) (have, want int) {
	switch kind {
	case "DaemonSet":
		return min(o.Status.NumberReady, o.Status.UpdatedNumberScheduled), o.Status.DesiredNumberScheduled
	case "Job":
		if slices.ContainsFunc(o.Status.Conditions, func(c struct{ Type, Status string }) bool { return c.Type == "Complete" && c.Status == "True" }) {
			return 1, 1
		}
		return min(o.Status.Succeeded, 1), 1
	}
	want = 1
	if o.Spec.Replicas != nil {
		want = *o.Spec.Replicas
	}
	// While old pods exist, some of the ready pods may be old.
	old := max(o.Status.Replicas-o.Status.UpdatedReplicas, 0)
	return min(max(o.Status.ReadyReplicas-old, 0), o.Status.UpdatedReplicas), want
}

// reasons returns what the containers of a namespace wait for, as kubelets report it.
func reasons(ctx context.Context, h *steps.Host, namespace string) (string, error) {
	out, err := Run(ctx, h, "--request-timeout=10s", "-n", namespace, "get", "pods", "-o",
		`jsonpath={range .items[*].status.containerStatuses[*]}{.state.waiting.reason}{": "}{.image}{"\n"}{end}`)
	if err != nil && !runner.Refused(err) {
		return "", err
	}
	var all []string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, ":") && line != "" && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	return " (" + strings.Join(all, "; ") + ")", nil
}

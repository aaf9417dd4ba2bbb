package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// level is how much of an object is there, and how much of it could be there now.
type level struct {
	Have int `json:"have"`
	Want int `json:"-"`
}

// levels are those of a cluster, by object: "Deployment default/web".
type levels map[string]level

// levelsFile is where those of before a change are kept, in the cluster's folder on the
// workdir host. A run that goes on holds the cluster against the same ones: what it took
// down itself is no measure.
func levelsFile(h *steps.Host) string { return filepath.Join(h.Workdir, "workloads-before.json") }

// NoteWorkloads notes how much of each Deployment, StatefulSet, DaemonSet,
// PodDisruptionBudget and Service is available. A note of an operation that has not ended
// stays as it is. It is asked on a master.
func NoteWorkloads() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "gate.note-workloads", Timeout: 2 * time.Minute, Retry: steps.Retry{Times: 5, Wait: 3 * time.Second}},
		Done: func(_ context.Context, h *steps.Host) (bool, error) {
			before, err := readLevels(h)
			return before != nil, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			now, why, err := readCluster(ctx, h)
			if err != nil {
				return err
			}
			if why != "" {
				return errors.New(why)
			}
			text, err := json.MarshalIndent(now, "", "  ")
			if err != nil {
				return err
			}
			return durable.WriteFile(levelsFile(h), append(text, '\n'), 0o600)
		},
		Undo: func(_ context.Context, h *steps.Host) error { return forget(h) },
	}
}

// ForgetWorkloads is its inverse, at the end of an operation.
func ForgetWorkloads() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "gate.forget-workloads", Timeout: time.Minute},
		Done: func(_ context.Context, h *steps.Host) (bool, error) {
			_, err := os.Stat(levelsFile(h))
			if errors.Is(err, fs.ErrNotExist) {
				return true, nil
			}
			return false, err
		},
		Act: func(_ context.Context, h *steps.Host) error { return forget(h) },
	}
}

func forget(h *steps.Host) error {
	if err := os.Remove(levelsFile(h)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Workloads waits until of nothing less is available than NoteWorkloads noted. What was
// scaled down since is held to what it asks for now. It is asked on a master.
func Workloads() steps.Step {
	return wait{
		name: "gate.workloads",
		look: func(ctx context.Context, h *steps.Host) ([]string, error) {
			before, err := readLevels(h)
			if err != nil {
				return nil, err
			}
			if before == nil {
				return []string{levelsFile(h) + ", the note of what was available before, is not there"}, nil
			}
			now, why, err := readCluster(ctx, h)
			if err != nil {
				return nil, err
			}
			if why != "" {
				return []string{why}, nil
			}
			return now.below(before), nil
		},
		patience: 10 * time.Minute,
		advice:   "see `kubectl get pods -A -o wide` on %s; what was deleted on purpose is forgotten by removing workloads-before.json from the cluster's folder",
	}.step()
}

// below lists what is less than before.
func (now levels) below(before levels) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		was := before[name]
		is, there := now[name]
		switch {
		case !there && was.Have > 0:
			out = append(out, fmt.Sprintf("%s is not there any more, %d were available", name, was.Have))
		case is.Have < min(was.Have, is.Want):
			out = append(out, fmt.Sprintf("%s: %d available, %d before", name, is.Have, was.Have))
		}
	}
	return out
}

func readLevels(h *steps.Host) (levels, error) {
	text, err := os.ReadFile(levelsFile(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	before := levels{}
	if err := json.Unmarshal(text, &before); err != nil {
		return nil, steps.Advise(fmt.Errorf("%s: %w", levelsFile(h), err), "remove the file; the state of now is noted then")
	}
	return before, nil
}

// readings are what is asked for, and how a row of it is read. A row begins with the kind,
// the namespace and the name.
func readings() []struct {
	args []string
	read func(row []string) (have, want int)
} {
	return []struct {
		args []string
		read func(row []string) (have, want int)
	}{
		{[]string{"deployments,statefulsets", "-o", `custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,HAVE:.status.availableReplicas,WANT:.spec.replicas`}, haveWant},
		{[]string{"daemonsets", "-o", `custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,HAVE:.status.numberAvailable,WANT:.status.desiredNumberScheduled`}, haveWant},
		{[]string{"poddisruptionbudgets", "-o", `custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name,HAVE:.status.disruptionsAllowed,PODS:.status.expectedPods,HEALTHY:.status.desiredHealthy`},
			func(row []string) (have, want int) { return number(row, 3), max(number(row, 4)-number(row, 5), 0) }},
		// A slice has no more than some of the endpoints of a Service; they are added up.
		{[]string{"endpointslices", "-o", `custom-columns=KIND:.kind,NAMESPACE:.metadata.namespace,SERVICE:.metadata.labels.kubernetes\.io/service-name,READY:.endpoints[*].conditions.ready`},
			func(row []string) (have, want int) {
				all := strings.Split(row[3], ",")
				for _, ready := range all {
					if ready == "true" {
						have++
					}
				}
				return have, len(all)
			}},
	}
}

func haveWant(row []string) (have, want int) { return number(row, 3), number(row, 4) }

// number reads a column; one that is not there is 0.
func number(row []string, column int) int {
	if column >= len(row) {
		return 0
	}
	n, err := strconv.Atoi(row[column])
	if err != nil { // <none>
		return 0
	}
	return n
}

// readCluster gives the levels of now; why says why the API server gives none.
func readCluster(ctx context.Context, h *steps.Host) (now levels, why string, err error) {
	now = levels{}
	for _, r := range readings() {
		rows, why, err := table(ctx, h, append([]string{"get", "-A"}, r.args...)...)
		if err != nil || why != "" {
			return nil, why, err
		}
		for _, row := range rows {
			if len(row) < 4 {
				return nil, "", fmt.Errorf("kubectl get %s: %q makes no sense", r.args[0], row)
			}
			if row[2] == "<none>" { // a slice that belongs to no Service
				continue
			}
			name := strings.Replace(row[0], "EndpointSlice", "Service", 1) + " " + row[1] + "/" + row[2]
			have, want := r.read(row)
			now[name] = level{Have: now[name].Have + have, Want: now[name].Want + want}
		}
	}
	return now, "", nil
}

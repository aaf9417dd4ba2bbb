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

// level is how much of an object is available, and how much is desired now.
type level struct {
	Have int `json:"have"`
	Want int `json:"-"`
}

// levels are the levels of a cluster's objects, by name: "Deployment default/web".
type levels map[string]level

// levelsFile returns the file with the levels before a change, in the cluster's folder on
// the workdir host. A resumed run compares with the same levels, because the interrupted run
// may have lowered the current ones.
func levelsFile(h *steps.Host) string { return filepath.Join(h.Workdir, "workloads-before.json") }

// NoteWorkloads records how much of each Deployment, StatefulSet, DaemonSet,
// PodDisruptionBudget and Service is available. It preserves the record of an operation that
// has not ended. It runs on a master.
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

// ForgetWorkloads removes that record at the end of an operation. It is the inverse of
// gate.note-workloads.
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

// Workloads waits until at least as much of every object is available as NoteWorkloads
// recorded. For an object that was scaled down since, the new scale is sufficient. It runs
// on a master.
func Workloads() steps.Step {
	return wait{
		name: "gate.workloads",
		check: func(ctx context.Context, h *steps.Host) ([]string, error) {
			before, err := readLevels(h)
			if err != nil {
				return nil, err
			}
			if before == nil {
				return []string{levelsFile(h) + ", the record of what was available before, does not exist"}, nil
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
		timeout: 10 * time.Minute,
		advice:  "run kubectl get pods -A -o wide on %s; if objects were deleted on purpose, remove workloads-before.json from the cluster's folder",
	}.step()
}

// below lists the objects of which less is available than before.
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
		return nil, steps.Advise(fmt.Errorf("%s: %w", levelsFile(h), err), "remove the file; kubexm then records the current state")
	}
	return before, nil
}

// readings returns the tables that are read, and how a row of each is interpreted. A row
// begins with kind, namespace and name.
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
		// A Service may have several EndpointSlices; their endpoints are added up.
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

// number returns a column as a number; 0 if it is missing.
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

// readCluster reads the current levels; why is an error of the API server, which may pass.
func readCluster(ctx context.Context, h *steps.Host) (now levels, why string, err error) {
	now = levels{}
	for _, r := range readings() {
		rows, why, err := table(ctx, h, append([]string{"get", "-A"}, r.args...)...)
		if err != nil || why != "" {
			return nil, why, err
		}
		for _, row := range rows {
			if len(row) < 4 {
				return nil, "", fmt.Errorf("kubectl get %s: unexpected output %q", r.args[0], row)
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

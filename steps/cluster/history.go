package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/steps"
)

// HistoryEntry is one line of the history: an operation that has ended, or a failed run of one.
type HistoryEntry struct {
	Operation
	End     time.Time `json:"end"`               // UTC, whole seconds
	Took    string    `json:"took"`              // of the last run: "3m12s"
	Outcome string    `json:"outcome"`           // "done", "failed" or "abandoned"
	Journal string    `json:"journal,omitempty"` // of the last run; its receipt has the same name
}

// mostHistory limits the lines of the history in the cluster.
const mostHistory = 50

// keyHistory is the key of the history in its ConfigMap.
const keyHistory = "history.jsonl"

// HistoryPath returns the path of a cluster's history on the workdir host.
func HistoryPath(workdir string) string { return filepath.Join(workdir, keyHistory) }

// ReadWorkdirHistory reads the history in the cluster's folder on the workdir host, the oldest
// line first.
func ReadWorkdirHistory(workdir string) ([]HistoryEntry, error) {
	text, err := os.ReadFile(HistoryPath(workdir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return DecodeHistory(text, HistoryPath(workdir))
}

// OutcomeDone is the outcome of an operation that has succeeded.
const OutcomeDone = "done"

// appended returns a history with one more line. The success of an operation is noted once: a
// run that was killed right after it wrote the line is repeated, and finds nothing to do.
func appended(all []HistoryEntry, e HistoryEntry) []HistoryEntry {
	if n := len(all); n > 0 && all[n-1].ID == e.ID && all[n-1].Outcome == OutcomeDone && e.Outcome == OutcomeDone {
		return all
	}
	return append(all, e)
}

// AddWorkdirHistory appends a line to the history in the cluster's folder on the workdir
// host. The success of an operation is noted once.
func AddWorkdirHistory(workdir string, e HistoryEntry) error {
	before, err := ReadWorkdirHistory(workdir)
	if err != nil {
		return err
	}
	text, err := EncodeHistory(appended(before, e)...)
	if err != nil {
		return err
	}
	return writeSecret(HistoryPath(workdir), text)
}

// AddHistory appends a line to the history in the cluster, the ConfigMap kubexm-history in
// kube-system. The success of an operation is noted once. It does nothing if h is not a master.
func AddHistory(ctx context.Context, h *steps.Host, e HistoryEntry) error {
	if master, err := administers(ctx, h); err != nil || !master {
		return err
	}
	all, err := FetchHistory(ctx, h)
	if err != nil {
		return err
	}
	all = appended(all, e)
	text, err := EncodeHistory(all[max(0, len(all)-mostHistory):]...)
	if err != nil {
		return err
	}
	object, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "kubexm-history", "namespace": "kube-system"}, "data": map[string]string{keyHistory: string(text)},
	})
	if err != nil {
		return err
	}
	return apply(ctx, h, object)
}

// FetchHistory reads the history in the cluster, the oldest line first. It returns nil if h
// is not a master.
func FetchHistory(ctx context.Context, h *steps.Host) ([]HistoryEntry, error) {
	data, err := readConfigMap(ctx, h, "kubexm-history")
	if err != nil || data == nil {
		return nil, err
	}
	return DecodeHistory([]byte(data[keyHistory]), "configmap kubexm-history")
}

// DecodeHistory parses the lines of a history; at is its source, for errors. A last line
// without a newline is ignored: a killed run may have left it incomplete.
func DecodeHistory(text []byte, at string) ([]HistoryEntry, error) {
	var out []HistoryEntry
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == "" || i == len(lines)-1 && !strings.HasSuffix(line, "\n") {
			continue
		}
		var e HistoryEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", at, i+1, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// EncodeHistory returns the lines of a history as JSON.
func EncodeHistory(all ...HistoryEntry) ([]byte, error) {
	var out strings.Builder
	e := json.NewEncoder(&out)
	for _, x := range all {
		if err := e.Encode(x); err != nil {
			return nil, err
		}
	}
	return []byte(out.String()), nil
}

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

// Ended is one line of the history: an operation that is over, or failed.
type Ended struct {
	Operation
	End     time.Time `json:"end"`               // UTC, whole seconds
	Took    string    `json:"took"`              // of the last run: "3m12s"
	Outcome string    `json:"outcome"`           // "done", "failed", "abandoned"
	Journal string    `json:"journal,omitempty"` // of the last run; its receipt has the same name
}

// mostHistory is how many lines the cluster keeps.
const mostHistory = 50

// keyHistory is the key of the history in its ConfigMap.
const keyHistory = "history.jsonl"

// HistoryPath is the history of a cluster in its folder on this machine.
func HistoryPath(workdir string) string { return filepath.Join(workdir, keyHistory) }

// HistoryHere reads the history in the cluster's folder, the oldest line first.
func HistoryHere(workdir string) ([]Ended, error) {
	text, err := os.ReadFile(HistoryPath(workdir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return DecodeHistory(text, HistoryPath(workdir))
}

// AddHistoryHere adds a line to the history in the cluster's folder.
func AddHistoryHere(workdir string, e Ended) error {
	before, err := HistoryHere(workdir)
	if err != nil {
		return err
	}
	text, err := EncodeHistory(append(before, e)...)
	if err != nil {
		return err
	}
	return keep(HistoryPath(workdir), text)
}

// AddHistory adds a line to the history that the cluster keeps. Where h is no master it
// does nothing.
func AddHistory(ctx context.Context, h *steps.Host, e Ended) error {
	if master, err := administers(ctx, h); err != nil || !master {
		return err
	}
	all, err := AskHistory(ctx, h)
	if err != nil {
		return err
	}
	all = append(all, e)
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

// AskHistory gives the history that the cluster keeps, the oldest line first; none where h
// is no master.
func AskHistory(ctx context.Context, h *steps.Host) ([]Ended, error) {
	data, err := askConfigMap(ctx, h, "kubexm-history")
	if err != nil || data == nil {
		return nil, err
	}
	return DecodeHistory([]byte(data[keyHistory]), "configmap kubexm-history")
}

// DecodeHistory reads lines of a history. The last may have been cut off by a kill: then
// it is none.
func DecodeHistory(text []byte, at string) ([]Ended, error) {
	var out []Ended
	lines := strings.SplitAfter(string(text), "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == "" || i == len(lines)-1 && !strings.HasSuffix(line, "\n") {
			continue
		}
		var e Ended
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", at, i+1, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// EncodeHistory writes lines of a history.
func EncodeHistory(all ...Ended) ([]byte, error) {
	var out strings.Builder
	e := json.NewEncoder(&out)
	for _, x := range all {
		if err := e.Encode(x); err != nil {
			return nil, err
		}
	}
	return []byte(out.String()), nil
}

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

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Recorded is what a cluster remembers of the last run that ended well: the digests,
// the serials and the components of Applied by their short names, and the config.
type Recorded struct {
	Summary map[string]string
	Config  []byte
}

// Components are the versions that were applied, by component; nil where the record
// does not say so, as one that an older kubexm wrote.
func (r *Recorded) Components() (map[string]string, error) {
	text := r.Summary["components"]
	if text == "" {
		return nil, nil
	}
	var out map[string]string
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("components of the record: %w", err)
	}
	return out, nil
}

// AskRecorded asks the cluster that h is a master of for its record. It gives nil where
// h is no master, and where the cluster has none: then its creation has not ended. A
// cluster that does not answer is an error.
func AskRecorded(ctx context.Context, h *steps.Host) (*Recorded, error) {
	switch _, err := h.ReadFile(ctx, kubectl.AdminConf); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "-n", "kube-system", "get", "configmap/kubexm", "-o", "json")
	var cmd *runner.CmdError
	if errors.As(err, &cmd) && strings.Contains(cmd.Stderr, "(NotFound)") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var object struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal([]byte(out), &object); err != nil {
		return nil, fmt.Errorf("configmap kubexm: %w", err)
	}
	r := &Recorded{Summary: object.Data, Config: []byte(object.Data["config.yaml"])}
	delete(r.Summary, "config.yaml")
	return r, nil
}

// ReadRecorded reads the record in the cluster's folder on this machine; nil without
// one.
func ReadRecorded(workdir string) (*Recorded, error) {
	read := func(name string) ([]byte, error) {
		text, err := os.ReadFile(filepath.Join(workdir, appliedPath(name)))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return text, err
	}
	config, err := read(appliedConfig)
	if err != nil || config == nil {
		return nil, err
	}
	text, err := read(appliedSummary)
	if err != nil {
		return nil, err
	}
	out := &Recorded{Config: config}
	if text == nil {
		return out, nil
	}
	if err := json.Unmarshal(text, &out.Summary); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(workdir, appliedPath(appliedSummary)), err)
	}
	return out, nil
}

// AppliedSerial asks the cluster that h is a master of for the highest serial that
// it has had; 0 where there is no cluster, or no record in it.
func AppliedSerial(ctx context.Context, h *steps.Host) (int64, error) {
	r, err := AskRecorded(ctx, h)
	if err != nil || r == nil {
		return 0, err
	}
	return HighestSerial(r.Summary), nil
}

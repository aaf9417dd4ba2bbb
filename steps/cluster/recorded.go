package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Recorded is the cluster record: what the last successful run applied. Summary has the
// digests, serials and components of Applied under short keys.
type Recorded struct {
	Summary map[string]string
	Config  []byte
}

// Components returns the applied versions by component; nil if the record has none, for
// example because an older kubexm wrote it.
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

// Set returns the applied release, such as "v1.32.2"; "" if the record has none.
func (r *Recorded) Set() string {
	var rel release
	if json.Unmarshal([]byte(r.Summary[keyRelease]), &rel) != nil { // written by an older kubexm
		return ""
	}
	return rel.Set
}

// Lead returns the master that it was applied through; "" if the record has none.
func (r *Recorded) Lead() string { return r.Summary[keyLead] }

// Away returns the names of the hosts that the run left out because it did not reach them.
func (r *Recorded) Away() []string { return strings.Fields(r.Summary[keyAway]) }

// Applied returns the record as steps.Applied. The lock file and the digests of files are
// missing, because the record does not contain them.
func (r *Recorded) Applied() (steps.Applied, error) {
	s := r.Summary
	components, err := r.Components()
	return steps.Applied{
		Config: r.Config, ConfigDigest: s["config"], LockDigest: s["lock"], Serial: s["serial"], Highest: s["highest"], Root: s["bundle"],
		Set: r.Set(), Components: components, Away: r.Away(),
	}, err
}

// Serial returns the bundle's serial; 0 if the record has none.
func (r *Recorded) Serial() int64 { return number(r.Summary["serial"]) }

// Revision returns the record's revision, which every change increments; 0 if an older
// kubexm wrote it.
func (r *Recorded) Revision() int64 { return number(r.Summary[keyRevision]) }

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Same reports whether two records are equal apart from their revisions and open
// operations.
func (r *Recorded) Same(other *Recorded) bool {
	plain := func(x *Recorded) map[string]string {
		out := maps.Clone(x.Summary)
		delete(out, keyRevision)
		delete(out, keyOperation)
		return out
	}
	return bytes.Equal(r.Config, other.Config) && maps.Equal(plain(r), plain(other))
}

// text encodes the record for files: without the config and the open operation.
func (r *Recorded) text() ([]byte, error) {
	plain := maps.Clone(r.Summary)
	delete(plain, keyOperation)
	out, err := json.MarshalIndent(plain, "", "  ")
	return append(out, '\n'), err
}

// administers reports whether a host has the administrator's kubeconfig.
func administers(ctx context.Context, h *steps.Host) (bool, error) {
	_, err := h.ReadFile(ctx, kubectl.AdminConf)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// readConfigMap reads a ConfigMap of kubexm's in kube-system through the master h. It
// returns nil if h is not a master, or if the ConfigMap does not exist.
func readConfigMap(ctx context.Context, h *steps.Host, name string) (map[string]string, error) {
	if master, err := administers(ctx, h); err != nil || !master {
		return nil, err
	}
	out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "-n", "kube-system", "get", "configmap/"+name, "-o", "json")
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
		return nil, fmt.Errorf("configmap %s: %w", name, err)
	}
	if object.Data == nil { // the ConfigMap exists and is empty
		object.Data = map[string]string{}
	}
	return object.Data, nil
}

// FetchRecorded reads the cluster record through the master h. It returns nil if h is not a
// master, or if the cluster has no record because its creation has not ended. It is an
// error if the API server does not answer.
func FetchRecorded(ctx context.Context, h *steps.Host) (*Recorded, error) {
	data, err := readConfigMap(ctx, h, "kubexm")
	if err != nil || data == nil {
		return nil, err
	}
	r := &Recorded{Summary: data, Config: []byte(data[keyConfig])}
	delete(r.Summary, keyConfig)
	return r, nil
}

// ReadRecorded reads the record in the cluster's folder on the workdir host; nil if there
// is none.
func ReadRecorded(workdir string) (*Recorded, error) {
	config, err := readApplied(workdir, appliedConfig)
	if err != nil || config == nil {
		return nil, err
	}
	out := &Recorded{Config: config}
	out.Summary, err = ReadSummary(workdir)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ReadSummary reads the record in the cluster's folder on the workdir host, without the
// config; nil if there is none.
func ReadSummary(workdir string) (map[string]string, error) {
	text, err := readApplied(workdir, appliedSummary)
	if err != nil || text == nil {
		return nil, err
	}
	var out map[string]string
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(workdir, appliedPath(appliedSummary)), err)
	}
	return out, nil
}

// readApplied reads a file of the record on the workdir host; nil if it does not exist.
func readApplied(workdir, name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(workdir, appliedPath(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// AppliedSerial reads the highest bundle serial that was ever applied to the cluster,
// through the master h; 0 if there is no cluster or no record.
func AppliedSerial(ctx context.Context, h *steps.Host) (int64, error) {
	r, err := FetchRecorded(ctx, h)
	if err != nil || r == nil {
		return 0, err
	}
	return HighestSerial(r.Summary), nil
}

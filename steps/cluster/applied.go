package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// recordFormat is the format of the records that this kubexm writes. A record without a
// format was written by an older kubexm, and is still read.
const recordFormat = "2"

// The keys of a record that are not fields of Applied.
const (
	keyFormat    = "format"
	keyRelease   = "release"
	keyLead      = "lead"
	keyAway      = "away"
	keyRevision  = "revision"
	keyOperation = "operation"
	keyConfig    = "config.yaml"
)

// release is the value of keyRelease.
type release struct {
	Set        string            `json:"set"`
	Components map[string]string `json:"components,omitempty"`
}

// summary returns the record's keys for what was applied, without the config and the lock
// file. lead is the master that it was applied through.
func summary(a steps.Applied, lead string) map[string]string {
	out := map[string]string{
		keyFormat: recordFormat, "config": a.ConfigDigest, "lock": a.LockDigest, "serial": a.Serial, "highest": a.Highest, "bundle": a.Root, keyLead: lead,
		keyAway: strings.Join(a.Away, " "), // also if empty, to replace the list of an earlier run
	}
	if text, err := json.Marshal(release{Set: a.Set, Components: a.Components}); err == nil { // text always encodes
		out[keyRelease] = string(text)
	}
	if text, err := json.Marshal(a.Components); err == nil && len(a.Components) > 0 { // where an older kubexm reads them
		out["components"] = string(text)
	}
	return out
}

// HighestSerial returns the highest bundle serial of a record's summary; 0 if it has none.
func HighestSerial(summary map[string]string) int64 {
	highest := int64(0)
	for _, key := range []string{"serial", "highest"} {
		if n, err := strconv.ParseInt(summary[key], 10, 64); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

// errNothingApplied is returned in runs that apply nothing.
var errNothingApplied = errors.New("the run has no record of what it applied")

// record returns the new record. Its highest serial is at least that of the existing
// record, which the run may not have been able to read before. If anything else changes,
// the revision is incremented and the open operation is closed. A different lead alone is
// no change: the one on record is preserved.
func record(ctx context.Context, h *steps.Host) (*Recorded, error) {
	if h.Applied == nil {
		return nil, errNothingApplied
	}
	a := h.Applied()
	was, err := FetchRecorded(ctx, h)
	if err != nil {
		var cmd *runner.CmdError
		if errors.As(err, &cmd) { // no API server answers: drift detection skips it
			err = op.Later(err)
		}
		return nil, err
	}
	if was == nil {
		was = &Recorded{}
	}
	if highest := max(HighestSerial(was.Summary), HighestSerial(map[string]string{"serial": a.Serial, "highest": a.Highest})); highest > 0 {
		a.Highest = strconv.FormatInt(highest, 10)
	}
	out := &Recorded{Summary: summary(a, h.Name), Config: a.Config}
	out.Summary[keyRevision], out.Summary[keyOperation] = strconv.FormatInt(was.Revision(), 10), was.Summary[keyOperation]
	if lead := was.Lead(); lead != "" {
		out.Summary[keyLead] = lead
	}
	if !out.Same(was) {
		out.Summary[keyLead] = h.Name
		out.Summary[keyRevision], out.Summary[keyOperation] = strconv.FormatInt(was.Revision()+1, 10), ""
	}
	return out, nil
}

// Record writes the cluster record, the ConfigMap kubexm in kube-system, with what the run
// applied. Of the lock file it contains only the digest, because of its size. A write that
// changes the record closes the open operation.
func Record() steps.Step {
	return kubectl.Apply("kubernetes.record-applied", nil, func(ctx context.Context, h *steps.Host) ([]byte, error) {
		r, err := record(ctx, h)
		if err != nil {
			return nil, err
		}
		return r.object()
	})
}

// object returns the record's ConfigMap.
func (r *Recorded) object() ([]byte, error) {
	data := map[string]string{keyConfig: string(r.Config)}
	maps.Copy(data, r.Summary)
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "kubexm", "namespace": "kube-system"}, "data": data,
	})
}

// The files of the cluster record, in the cluster's folder on the workdir host.
const (
	appliedConfig  = "config.yaml"
	appliedLock    = "kubexm.lock"
	appliedSummary = "applied.json"
	appliedBundles = "bundles.json"
)

func appliedPath(name string) string { return filepath.Join("applied", name) }

func appliedNames() []string {
	return []string{appliedPath(appliedConfig), appliedPath(appliedLock), appliedPath(appliedSummary), appliedPath(appliedBundles)}
}

// WriteApplied stores the cluster record on the workdir host, with the lock file.
func WriteApplied() steps.Step {
	return writeWorkdir("kubernetes.keep-applied", func(ctx context.Context, h *steps.Host) (map[string][]byte, error) {
		r, err := recorded(ctx, h)
		if err != nil {
			return nil, err
		}
		text, err := r.text()
		files := map[string][]byte{appliedPath(appliedConfig): r.Config, appliedPath(appliedSummary): text}
		if lock := h.Applied().Lock; lock != nil { // a run without a bundle may not have it
			files[appliedPath(appliedLock)] = lock
		}
		if bundles := h.Applied().Bundles; bundles != nil {
			files[appliedPath(appliedBundles)] = bundles
		}
		return files, err
	})
}

// recorded reads the cluster record of this run through the API server of h. Until it is
// written the error is op.Later.
func recorded(ctx context.Context, h *steps.Host) (*Recorded, error) {
	if h.Applied == nil {
		return nil, errNothingApplied
	}
	r, err := FetchRecorded(ctx, h)
	var cmd *runner.CmdError
	switch {
	case errors.As(err, &cmd):
		return nil, op.Later(err)
	case err != nil:
		return nil, err
	case r == nil || r.Summary["lock"] != h.Applied().LockDigest:
		return nil, op.Later(errors.New("the cluster record does not contain this run yet"))
	}
	return r, nil
}

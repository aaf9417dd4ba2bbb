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

// recordFormat is the form of the records that this kubexm writes. One without a format
// is of an older kubexm, and is read all the same.
const recordFormat = "2"

// The keys of a record that have no field in Applied of their own.
const (
	keyFormat    = "format"
	keyRelease   = "release"
	keyLead      = "lead"
	keyAway      = "away"
	keyRevision  = "revision"
	keyOperation = "operation"
	keyConfig    = "config.yaml"
)

// release is the release of a record.
type release struct {
	Set        string            `json:"set"`
	Components map[string]string `json:"components,omitempty"`
}

// summary is all of what was applied that is short. lead is the host that it was applied
// through.
func summary(a steps.Applied, lead string) map[string]string {
	out := map[string]string{
		keyFormat: recordFormat, "config": a.ConfigDigest, "lock": a.LockDigest, "serial": a.Serial, "highest": a.Highest, "bundle": a.Root, keyLead: lead,
		keyAway: strings.Join(a.Away, " "), // also without: an earlier run may have gone without some
	}
	if text, err := json.Marshal(release{Set: a.Set, Components: a.Components}); err == nil { // text always encodes
		out[keyRelease] = string(text)
	}
	if text, err := json.Marshal(a.Components); err == nil && len(a.Components) > 0 { // an older kubexm reads them here
		out["components"] = string(text)
	}
	return out
}

// HighestSerial reads the highest serial out of such a summary; 0 where it has none.
func HighestSerial(summary map[string]string) int64 {
	highest := int64(0)
	for _, key := range []string{"serial", "highest"} {
		if n, err := strconv.ParseInt(summary[key], 10, 64); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

// errNothingApplied is of runs that bring nothing.
var errNothingApplied = errors.New("the run does not say what it applied")

// record gives what is to be recorded. The highest serial is at least that of the
// cluster's record, which the run may not have been able to ask for before. The revision
// grows where anything else differs, and then no operation is open any more. Another
// lead alone is no change: the one on record stays.
func record(ctx context.Context, h *steps.Host) (*Recorded, error) {
	if h.Applied == nil {
		return nil, errNothingApplied
	}
	a := h.Applied()
	was, err := AskRecorded(ctx, h)
	if err != nil {
		var cmd *runner.CmdError
		if errors.As(err, &cmd) { // no API server answers: a look passes that over
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

// Record keeps in the cluster what was applied. The lock is too long for that:
// its digest is. The write that says something new ends the operation that was open.
func Record() steps.Step {
	return kubectl.Apply("kubernetes.record-applied", nil, func(ctx context.Context, h *steps.Host) ([]byte, error) {
		r, err := record(ctx, h)
		if err != nil {
			return nil, err
		}
		return r.object()
	})
}

// object is the record as the cluster keeps it.
func (r *Recorded) object() ([]byte, error) {
	data := map[string]string{keyConfig: string(r.Config)}
	maps.Copy(data, r.Summary)
	return yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "kubexm", "namespace": "kube-system"}, "data": data,
	})
}

// The documents of what was applied, in the cluster's folder.
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

// KeepApplied keeps the cluster's record here, with the lock itself.
func KeepApplied() steps.Step {
	return keepHere("kubernetes.keep-applied", func(ctx context.Context, h *steps.Host) (map[string][]byte, error) {
		r, err := recorded(ctx, h)
		if err != nil {
			return nil, err
		}
		text, err := r.text()
		files := map[string][]byte{appliedPath(appliedConfig): r.Config, appliedPath(appliedLock): h.Applied().Lock, appliedPath(appliedSummary): text}
		if bundles := h.Applied().Bundles; bundles != nil {
			files[appliedPath(appliedBundles)] = bundles
		}
		return files, err
	})
}

// recorded gives the cluster's record of what this run applied, as the API server of h
// tells it. Until it has one the answer is later.
func recorded(ctx context.Context, h *steps.Host) (*Recorded, error) {
	if h.Applied == nil {
		return nil, errNothingApplied
	}
	r, err := AskRecorded(ctx, h)
	var cmd *runner.CmdError
	switch {
	case errors.As(err, &cmd):
		return nil, op.Later(err)
	case err != nil:
		return nil, err
	case r == nil || r.Summary["lock"] != h.Applied().LockDigest:
		return nil, op.Later(errors.New("the cluster has no record of this run yet"))
	}
	return r, nil
}

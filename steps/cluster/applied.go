package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// summary is all of what was applied that is short.
func summary(a steps.Applied) map[string]string {
	out := map[string]string{"config": a.ConfigDigest, "lock": a.LockDigest, "serial": a.Serial, "highest": a.Highest, "bundle": a.Root,
		"away": strings.Join(a.Away, " ")} // also without: an earlier run may have gone without some
	if text, err := json.Marshal(a.Components); err == nil && len(a.Components) > 0 { // a mapping of text always encodes
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

// applied gives what is to be recorded, with the highest serial at least as high as
// the cluster's record of it: the run may not have been able to ask for that before.
func applied(ctx context.Context, h *steps.Host) (steps.Applied, error) {
	if h.Applied == nil {
		return steps.Applied{}, errors.New("the run does not say what it applied")
	}
	a := h.Applied()
	was, err := AppliedSerial(ctx, h)
	if err != nil {
		var cmd *runner.CmdError
		if errors.As(err, &cmd) { // no API server answers: a look passes that over
			err = op.Later(err)
		}
		return a, err
	}
	if was > HighestSerial(map[string]string{"highest": a.Highest}) {
		a.Highest = strconv.FormatInt(was, 10)
	}
	return a, nil
}

// Record keeps in the cluster what was applied. The lock is too long for that:
// its digest is.
func Record() steps.Step {
	return kubectl.Apply("kubernetes.record-applied", nil, func(ctx context.Context, h *steps.Host) ([]byte, error) {
		x, err := applied(ctx, h)
		if err != nil {
			return nil, err
		}
		data := summary(x)
		data["config.yaml"] = string(x.Config)
		return yaml.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "kubexm", "namespace": "kube-system"}, "data": data,
		})
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

// KeepApplied keeps the same here, with the lock itself.
func KeepApplied() steps.Step {
	return keepHere("kubernetes.keep-applied", func(ctx context.Context, h *steps.Host) (map[string][]byte, error) {
		x, err := applied(ctx, h)
		if err != nil {
			return nil, err
		}
		text, err := json.MarshalIndent(summary(x), "", "  ")
		files := map[string][]byte{
			appliedPath(appliedConfig): x.Config, appliedPath(appliedLock): x.Lock, appliedPath(appliedSummary): append(text, '\n'),
		}
		if x.Bundles != nil {
			files[appliedPath(appliedBundles)] = x.Bundles
		}
		return files, err
	})
}

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

// Set is the release that was applied: "v1.32.2"; "" where the record does not say so.
func (r *Recorded) Set() string {
	var rel release
	if json.Unmarshal([]byte(r.Summary[keyRelease]), &rel) != nil { // of an older kubexm
		return ""
	}
	return rel.Set
}

// Lead is the master that it was applied through; "" where the record does not say so.
func (r *Recorded) Lead() string { return r.Summary[keyLead] }

// Away are the hosts on which nothing was done, by name.
func (r *Recorded) Away() []string { return strings.Fields(r.Summary[keyAway]) }

// Applied is the record as the run said it that wrote it, as far as it is written down:
// the lock itself and the digests of files are not.
func (r *Recorded) Applied() (steps.Applied, error) {
	s := r.Summary
	components, err := r.Components()
	return steps.Applied{
		Config: r.Config, ConfigDigest: s["config"], LockDigest: s["lock"], Serial: s["serial"], Highest: s["highest"], Root: s["bundle"],
		Set: r.Set(), Components: components, Away: r.Away(),
	}, err
}

// Serial is the bundle's; 0 where the record does not say it.
func (r *Recorded) Serial() int64 { return number(r.Summary["serial"]) }

// Revision grows with every change of the record; 0 where an older kubexm wrote it.
func (r *Recorded) Revision() int64 { return number(r.Summary[keyRevision]) }

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Same tells whether two records say the same, whatever their revisions, and whether an
// operation is open.
func (r *Recorded) Same(other *Recorded) bool {
	plain := func(x *Recorded) map[string]string {
		out := maps.Clone(x.Summary)
		delete(out, keyRevision)
		delete(out, keyOperation)
		return out
	}
	return bytes.Equal(r.Config, other.Config) && maps.Equal(plain(r), plain(other))
}

// text is the record without the config, as files hold it. Whether an operation is open
// is no part of it.
func (r *Recorded) text() ([]byte, error) {
	plain := maps.Clone(r.Summary)
	delete(plain, keyOperation)
	out, err := json.MarshalIndent(plain, "", "  ")
	return append(out, '\n'), err
}

// administers tells whether a host has the administrator's kubeconfig.
func administers(ctx context.Context, h *steps.Host) (bool, error) {
	_, err := h.ReadFile(ctx, kubectl.AdminConf)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// askConfigMap asks the cluster that h is a master of for a ConfigMap of kubexm's. It
// gives nil where h is no master, and where the cluster has none.
func askConfigMap(ctx context.Context, h *steps.Host, name string) (map[string]string, error) {
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
	if object.Data == nil { // somebody emptied it
		object.Data = map[string]string{}
	}
	return object.Data, nil
}

// AskRecorded asks the cluster that h is a master of for its record. It gives nil where
// h is no master, and where the cluster has none: then its creation has not ended. A
// cluster that does not answer is an error.
func AskRecorded(ctx context.Context, h *steps.Host) (*Recorded, error) {
	data, err := askConfigMap(ctx, h, "kubexm")
	if err != nil || data == nil {
		return nil, err
	}
	r := &Recorded{Summary: data, Config: []byte(data[keyConfig])}
	delete(r.Summary, keyConfig)
	return r, nil
}

// ReadRecorded reads the record in the cluster's folder on this machine; nil without
// one.
func ReadRecorded(workdir string) (*Recorded, error) {
	config, err := readHere(workdir, appliedConfig)
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

// ReadSummary reads the record in the cluster's folder without the config; nil without
// one.
func ReadSummary(workdir string) (map[string]string, error) {
	text, err := readHere(workdir, appliedSummary)
	if err != nil || text == nil {
		return nil, err
	}
	var out map[string]string
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(workdir, appliedPath(appliedSummary)), err)
	}
	return out, nil
}

// readHere reads a document of what was applied; nil without one.
func readHere(workdir, name string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(workdir, appliedPath(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
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

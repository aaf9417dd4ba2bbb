package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Release is the release that was last installed on a host. It is for operators and for
// `kubexm get releases`: steps observe the host's state and do not read it.
type Release struct {
	Set        string               `json:"set"`
	Components map[string]Component `json:"components,omitempty"`
	Before     string               `json:"before,omitempty"`    // the release that this one replaced
	Operation  string               `json:"operation,omitempty"` // ID of the operation that installed it
	Time       time.Time            `json:"time"`                // of the installation: UTC, whole seconds
}

// Component is the installed version of one component.
type Component struct {
	Version string `json:"version"`
	Digest  string `json:"digest,omitempty"` // "sha256:…" of its file in the bundle
}

func releasePath(h *steps.Host) string { return path.Join(ownDir(h), "release.json") }

// WriteRelease writes a file with the installed release to a host, as the last step on it.
func WriteRelease() steps.Step {
	return op.Ensure("kubernetes.keep-release", []op.Resource{releaseFile{}})
}

// RemoveRelease removes the release file from a host, and the file of an open operation.
func RemoveRelease() steps.Step {
	return op.Remove("kubernetes.remove-release", []op.Resource{releaseFile{}, operationFile{}})
}

// ReadRelease reads the release file of a host; nil if it has none.
func ReadRelease(ctx context.Context, h *steps.Host) (*Release, error) {
	text, err := h.ReadFile(ctx, releasePath(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Release{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", releasePath(h), err)
	}
	return r, nil
}

// releaseFile is a host's record of its release.
type releaseFile struct{}

func (releaseFile) String() string { return "record of the host's release" }

// Needs returns nil.
func (releaseFile) Needs() []manifest.Need { return nil }

// Want compares the release and its components. Operation and time are not compared: they
// are those of the last change.
func (releaseFile) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	if h.Applied == nil {
		return nil, errNothingApplied
	}
	a := h.Applied()
	want := Release{Set: a.Set, Components: map[string]Component{}, Operation: a.Operation, Time: time.Now().UTC().Truncate(time.Second)}
	for name, version := range part.Components(h.Cluster, h.Name, a.Components) {
		want.Components[name] = Component{Version: version, Digest: a.Digests[name+" "+h.Platform.String()]}
	}
	was, err := ReadRelease(ctx, h)
	var before []byte
	if err == nil && was != nil {
		if a.Digests == nil { // drift detection has no digests
			for name, c := range want.Components {
				if had := was.Components[name]; had.Version == c.Version {
					want.Components[name] = had
				}
			}
		}
		if was.Set == want.Set && maps.Equal(was.Components, want.Components) {
			return nil, nil
		}
		if want.Before = was.Before; was.Set != want.Set {
			want.Before = was.Set
		}
		before, err = h.ReadFile(ctx, releasePath(h))
	}
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		return nil, err
	}
	return &op.Change{
		What: "write " + releasePath(h),
		Apply: func(ctx context.Context, h *steps.Host) error {
			return writeOwn(ctx, h, releasePath(h), append(text, '\n'))
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if was == nil {
				return h.Remove(ctx, releasePath(h))
			}
			return writeOwn(ctx, h, releasePath(h), before)
		},
	}, nil
}

// Gone removes the file.
func (releaseFile) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	return goneFile(ctx, h, releasePath(h))
}

// goneFile removes a file of the cluster's folder on a host.
func goneFile(ctx context.Context, h *steps.Host, name string) (*op.Change, error) {
	switch _, err := h.Stat(ctx, name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &op.Change{What: "remove " + name, Apply: func(ctx context.Context, h *steps.Host) error { return h.Remove(ctx, name) }}, nil
}

// writeOwn writes a file to the cluster's folder on a host, with mode 0600.
func writeOwn(ctx context.Context, h *steps.Host, name string, text []byte) error {
	if _, err := h.Mkdir(ctx, op.RecordDir(h), runner.Attr{Mode: 0o700}); err != nil {
		return err
	}
	return h.WriteFile(ctx, name, text, runner.Attr{Mode: 0o600})
}

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

// Release is what was last brought to one host. It is for people and for `kubexm get
// releases`: what a step does is decided by what it sees, and never by this.
type Release struct {
	Set        string               `json:"set"`
	Components map[string]Component `json:"components,omitempty"`
	Before     string               `json:"before,omitempty"`    // the release that this one replaced
	Operation  string               `json:"operation,omitempty"` // that brought it
	Time       time.Time            `json:"time"`                // when: UTC, whole seconds
}

// Component is what a host has of one component.
type Component struct {
	Version string `json:"version"`
	Digest  string `json:"digest,omitempty"` // "sha256:…" of the file that it came as
}

func releasePath(h *steps.Host) string { return path.Join(ownDir(h), "release.json") }

// KeepRelease writes down on a host which release it has: the last step of its part.
func KeepRelease() steps.Step {
	return op.Ensure("kubernetes.keep-release", []op.Resource{releaseFile{}})
}

// RemoveRelease is its inverse. An operation that is open on the host ends with it.
func RemoveRelease() steps.Step {
	return op.Remove("kubernetes.remove-release", []op.Resource{releaseFile{}, operationFile{}})
}

// ReadRelease reads which release a host has; nil where nothing says so.
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

// Needs gives none.
func (releaseFile) Needs() []manifest.Need { return nil }

// Want compares the release and its components: operation and time are those of the last
// change.
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
		if a.Digests == nil { // of a look
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

// writeOwn writes a file of the cluster's folder on a host, for root alone.
func writeOwn(ctx context.Context, h *steps.Host, name string, text []byte) error {
	if _, err := h.Mkdir(ctx, op.RecordDir(h), runner.Attr{Mode: 0o700}); err != nil {
		return err
	}
	return h.WriteFile(ctx, name, text, runner.Attr{Mode: 0o600})
}

package steps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/bundle/transfer"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Artifacts gives access to the content of a bundle.
type Artifacts interface {
	registry.Source
	// Images returns all images of the run's set and of the other sets in its plan. They
	// determine what the site's registry has to provide and which upstream registries
	// nodes may pull from.
	Images() []manifest.ImagePin
	// File opens the file that n refers to on platform p. Reads verify its digest.
	File(ctx context.Context, n manifest.Need, p manifest.Platform) (io.ReadCloser, manifest.Blob, error)
	// Lookup returns the lock's entry of a file.
	Lookup(n manifest.Need, p manifest.Platform) (manifest.Blob, error)
	// Repository returns the lock's entry of the package repository that n refers to.
	Repository(n manifest.Need, p manifest.Platform) (manifest.Artifact, error)
	// Image returns the pin of the image that n refers to.
	Image(n manifest.Need) (manifest.ImagePin, error)
}

// Host is a step's access to one host: its config, its Runner, and the data of the run.
// It holds no context and no reference to the plan or the engine.
type Host struct {
	manifest.Host
	*runner.Runner
	Platform   manifest.Platform
	Cluster    *manifest.Cluster
	Facts      runner.Facts
	Workdir    string // the cluster's folder on the workdir host
	Log        *slog.Logger
	Artifacts  Artifacts
	BundleTime time.Time // build time of the bundle, a lower bound for clocks; zero without a bundle
	Away       []string  // names of the cluster's hosts that the run leaves out
	DryRun     bool      // the run changes nothing; a step waits for nothing then

	// Reveal returns the value of a secret of the config. If it is nil, only literal
	// secrets can be read.
	Reveal func(manifest.Secret) (string, error)
	// Applied returns what the run applies, for the cluster record. It is nil in runs
	// that apply no bundle.
	Applied func() Applied
	// Timeouts are the timeouts for registries and stores that are reached through the host.
	// The zero value means defaults.
	Timeouts transfer.Timeouts
	// Direct connects from the workdir host, not through the host. Nil means the network
	// of the workdir host.
	Direct func(ctx context.Context, network, address string) (net.Conn, error)

	board  *Board
	meta   Meta
	set    string
	report func(Finding)
	waits  func(string)
	undo   []func(context.Context) error
}

// ForStep returns a copy of h that is restricted to what m declares, with an empty list
// of rollback functions.
func (h *Host) ForStep(m Meta) *Host {
	c := *h
	c.meta, c.undo = m, nil
	return &c
}

// InSet returns a copy of h whose needs refer to the given set of the lock unless they
// specify one. "" is the set of the run.
func (h *Host) InSet(set string) *Host {
	c := *h
	c.set = set
	return &c
}

// WithReport returns a copy of h that passes reported findings to f.
func (h *Host) WithReport(f func(Finding)) *Host {
	c := *h
	c.report = f
	return &c
}

// Report reports a finding that does not fail the step: a warning or a note.
func (h *Host) Report(f Finding) {
	if h.report != nil {
		h.report(f)
	}
}

// WithWaitReport returns a copy of h that passes to f what the step is waiting for.
func (h *Host) WithWaitReport(f func(string)) *Host {
	c := *h
	c.waits = f
	return &c
}

// ReportWait reports what the step is waiting for now.
func (h *Host) ReportWait(what string) {
	if h.waits != nil {
		h.waits(what)
	}
}

// WithBoard returns a copy of h that uses the board of a run.
func (h *Host) WithBoard(b *Board) *Host {
	c := *h
	c.board = b
	return &c
}

// Secret returns the value of a secret of the config.
func (h *Host) Secret(s manifest.Secret) (string, error) {
	if h.Reveal != nil {
		return h.Reveal(s)
	}
	return s.Reveal(func(string) (string, bool) { return "", false }, func(path string) ([]byte, error) {
		return nil, fmt.Errorf("%s: this run cannot read secrets from files", path)
	})
}

// OnRollback registers f to be called by Unwind, like testing.T.Cleanup.
func (h *Host) OnRollback(f func(context.Context) error) { h.undo = append(h.undo, f) }

// Unwind calls all functions registered by OnRollback, the newest first, and joins
// their errors.
func (h *Host) Unwind(ctx context.Context) error {
	var errs []error
	for _, f := range slices.Backward(h.undo) {
		errs = append(errs, f(ctx))
	}
	h.undo = nil
	return errors.Join(errs...)
}

// Artifact opens a file of the bundle for this host. It is an error to open an artifact
// that the step does not declare in Meta.Needs: kubexm checks from the declarations that
// a bundle is complete.
func (h *Host) Artifact(ctx context.Context, n manifest.Need) (io.ReadCloser, manifest.Blob, error) {
	if err := h.declared(n); err != nil {
		return nil, manifest.Blob{}, err
	}
	return h.Artifacts.File(ctx, h.inSet(n), h.Platform)
}

// ReadArtifact returns a small file of the bundle for this host, such as a manifest.
func (h *Host) ReadArtifact(ctx context.Context, n manifest.Need) ([]byte, error) {
	rc, _, err := h.Artifact(ctx, n)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return io.ReadAll(rc)
}

// Lookup returns the lock's entry of a file for this host. The step must declare it.
func (h *Host) Lookup(n manifest.Need) (manifest.Blob, error) {
	if err := h.declared(n); err != nil {
		return manifest.Blob{}, err
	}
	return h.Artifacts.Lookup(h.inSet(n), h.Platform)
}

// Repository returns the package repository for this host. The step must declare it, and
// may then open its files with Artifact: "debian-12/Release" of "debian-12".
func (h *Host) Repository(n manifest.Need) (manifest.Artifact, error) {
	if err := h.declared(n); err != nil {
		return manifest.Artifact{}, err
	}
	return h.Artifacts.Repository(h.inSet(n), h.Platform)
}

// Image returns an image of the bundle. The step must declare it.
func (h *Host) Image(n manifest.Need) (manifest.ImagePin, error) {
	if err := h.declared(n); err != nil {
		return manifest.ImagePin{}, err
	}
	return h.Artifacts.Image(h.inSet(n))
}

func (h *Host) inSet(n manifest.Need) manifest.Need {
	n.Set = cmp.Or(n.Set, h.set)
	return n
}

func (h *Host) declared(n manifest.Need) error {
	repository := n
	if n.Kind == manifest.Packages {
		repository.Name, _, _ = strings.Cut(n.Name, "/")
	}
	if !slices.Contains(h.meta.Needs, n) && !slices.Contains(h.meta.Needs, repository) {
		return fmt.Errorf("step %s opens %s %s without declaring it", h.meta.Name, n.Kind, n.Name)
	}
	return nil
}

// Wrote reports whether every output that the step declares has been set. The engine
// runs a step that is Done but has not set them.
func (h *Host) Wrote() bool {
	for _, k := range h.meta.Writes {
		if !h.board.has(k, h.Name) {
			return false
		}
	}
	return true
}

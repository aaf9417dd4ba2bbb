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

// Artifacts opens what a bundle holds.
type Artifacts interface {
	registry.Source
	// Images gives every image of the sets that the run's plan names, and of its own set:
	// what a registry is to hold, and which upstreams nodes may ask for.
	Images() []manifest.ImagePin
	// File opens the blob that n means on p. Its bytes are checked as they are read.
	File(ctx context.Context, n manifest.Need, p manifest.Platform) (io.ReadCloser, manifest.Blob, error)
	// Lookup gives the lock's entry of a file.
	Lookup(n manifest.Need, p manifest.Platform) (manifest.Blob, error)
	// Repository gives the lock's entry of the repository of packages that n means.
	Repository(n manifest.Need, p manifest.Platform) (manifest.Artifact, error)
	// Image gives the pin of the image that n means.
	Image(n manifest.Need) (manifest.ImagePin, error)
}

// Host is what a step works through: one host's data, its hands, and what the
// run knows. It holds no context and no way up to the plan or the engine.
type Host struct {
	manifest.Host
	*runner.Runner
	Platform  manifest.Platform
	Cluster   *manifest.Cluster
	Facts     runner.Facts
	Workdir   string // the cluster's folder on the machine kubexm runs on
	Log       *slog.Logger
	Artifacts Artifacts
	Made      time.Time // when the bundle was made, before which no clock is; zero without one
	Away      []string  // hosts of the cluster that the run goes without, by name

	// Reveal gives the value of a secret of the config; nil knows those that are
	// written out.
	Reveal func(manifest.Secret) (string, error)
	// Applied tells what the run applies, for the records of it; nil where a run brings
	// nothing.
	Applied func() Applied
	// Waits bound how long registries and stores that are asked through the host may
	// say nothing; the zero Waits has defaults.
	Waits transfer.Waits
	// Direct connects from the machine kubexm runs on, not through the host; nil is
	// the machine's own network.
	Direct func(ctx context.Context, network, address string) (net.Conn, error)

	board  *Board
	meta   Meta
	set    string
	report func(Finding)
	waits  func(string)
	undo   []func(context.Context) error
}

// ForStep narrows h to what one step declares, with an empty list of what to undo.
func (h *Host) ForStep(m Meta) *Host {
	c := *h
	c.meta, c.undo = m, nil
	return &c
}

// InSet has h open the files and images of a set of the lock where a need names none;
// "" is that of the run.
func (h *Host) InSet(set string) *Host {
	c := *h
	c.set = set
	return &c
}

// WithReport has f hear of what the steps report.
func (h *Host) WithReport(f func(Finding)) *Host {
	c := *h
	c.report = f
	return &c
}

// Report tells of a finding that lets the step pass: a warning or a note.
func (h *Host) Report(f Finding) {
	if h.report != nil {
		h.report(f)
	}
}

// WithWaits has f hear of what the steps wait for.
func (h *Host) WithWaits(f func(string)) *Host {
	c := *h
	c.waits = f
	return &c
}

// WaitsFor tells what the step waits for by now.
func (h *Host) WaitsFor(what string) {
	if h.waits != nil {
		h.waits(what)
	}
}

// WithBoard gives h the board of a run.
func (h *Host) WithBoard(b *Board) *Host {
	c := *h
	c.board = b
	return &c
}

// Secret gives the value of a secret of the config.
func (h *Host) Secret(s manifest.Secret) (string, error) {
	if h.Reveal != nil {
		return h.Reveal(s)
	}
	return s.Reveal(func(string) (string, bool) { return "", false }, func(path string) ([]byte, error) {
		return nil, fmt.Errorf("%s: nobody reads files for this run", path)
	})
}

// OnRollback adds something to undo, as testing.T.Cleanup does.
func (h *Host) OnRollback(f func(context.Context) error) { h.undo = append(h.undo, f) }

// Unwind undoes what OnRollback was given, the newest first, all of it.
func (h *Host) Unwind(ctx context.Context) error {
	var errs []error
	for _, f := range slices.Backward(h.undo) {
		errs = append(errs, f(ctx))
	}
	h.undo = nil
	return errors.Join(errs...)
}

// Artifact opens a file of the bundle for this host. A step opens only what it
// declares: else the proof that the bundle is complete would be worth nothing.
func (h *Host) Artifact(ctx context.Context, n manifest.Need) (io.ReadCloser, manifest.Blob, error) {
	if err := h.declared(n); err != nil {
		return nil, manifest.Blob{}, err
	}
	return h.Artifacts.File(ctx, h.inSet(n), h.Platform)
}

// Lookup gives the lock's entry of a file for this host, declared like an Artifact.
func (h *Host) Lookup(n manifest.Need) (manifest.Blob, error) {
	if err := h.declared(n); err != nil {
		return manifest.Blob{}, err
	}
	return h.Artifacts.Lookup(h.inSet(n), h.Platform)
}

// Repository gives a repository of packages for this host, declared like an
// Artifact. Its files are Artifacts then: "debian-12/Release" of "debian-12".
func (h *Host) Repository(n manifest.Need) (manifest.Artifact, error) {
	if err := h.declared(n); err != nil {
		return manifest.Artifact{}, err
	}
	return h.Artifacts.Repository(h.inSet(n), h.Platform)
}

// Image gives an image of the bundle, declared like an Artifact.
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
	whole := n
	if n.Kind == manifest.Packages {
		whole.Name, _, _ = strings.Cut(n.Name, "/")
	}
	if !slices.Contains(h.meta.Needs, n) && !slices.Contains(h.meta.Needs, whole) {
		return fmt.Errorf("step %s opens %s %s without declaring it", h.meta.Name, n.Kind, n.Name)
	}
	return nil
}

// Wrote tells whether every output that the step declares was given. A step
// that is Done but has not given them runs all the same.
func (h *Host) Wrote() bool {
	for _, k := range h.meta.Writes {
		if !h.board.has(k, h.Name) {
			return false
		}
	}
	return true
}

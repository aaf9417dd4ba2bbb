package packages

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Installed is a resource: packages of the host's operating system, from the repository in
// the bundle. An already installed package of any version stays unchanged, unless a new
// package requires a newer version of it. The record lists the installed packages, and a
// removal removes exactly those.
type Installed struct {
	// Systems are the operating systems whose packages the bundle contains, in the form
	// that SystemOf returns.
	Systems []string
	// Pick selects from the required packages of the repository; nil selects all.
	Pick func(h *steps.Host, want []string) []string
}

// lockWait is the timeout for other installations on a host to end.
const lockWait = 10 * time.Minute

// SystemOf returns a host's operating system in the form of Needs: "debian-12".
func SystemOf(f runner.Facts) string {
	return manifest.Platform{Distribution: f.OS.ID, Release: f.OS.VersionID}.System()
}

func (p Installed) String() string { return "packages" }

// Needs returns the repositories of all systems: the host's system is unknown until it is
// reached.
func (p Installed) Needs() []manifest.Need {
	var out []manifest.Need
	for _, s := range p.Systems {
		out = append(out, manifest.Need{Kind: manifest.Packages, Name: s})
	}
	return out
}

// work is the repository and the required packages of one host in a run.
type work struct {
	h    *steps.Host
	need manifest.Need
	repo manifest.Artifact
	want []string
}

func (p Installed) on(h *steps.Host) (*work, error) {
	if err := Unsupported(h); err != nil {
		return nil, err
	}
	system := SystemOf(h.Facts)
	if !slices.Contains(p.Systems, system) {
		return nil, NotInBundle(h, p.Systems)
	}
	w := &work{h: h, need: manifest.Need{Kind: manifest.Packages, Name: system}}
	var err error
	if w.repo, err = h.Repository(w.need); err != nil {
		return nil, err
	}
	if w.repo.Packages == nil {
		return nil, fmt.Errorf("the lock does not list the required packages of %s", system)
	}
	if w.want = w.repo.Packages.Want; p.Pick != nil {
		w.want = p.Pick(h, w.want)
	}
	return w, nil
}

func (w *work) format() string { return w.repo.Packages.Format }

// choices splits the alternatives of a required package: "a | b".
func choices(required string) []string {
	var out []string
	for c := range strings.SplitSeq(required, "|") {
		out = append(out, strings.TrimSpace(c))
	}
	return out
}

// query reads the packages of the host.
func (w *work) query(ctx context.Context) (runner.Packages, error) {
	var names []string
	for _, required := range w.want {
		names = append(names, choices(required)...)
	}
	return w.h.Packages(ctx, w.format(), names...)
}

// missing returns, for each required package that the host lacks, the alternative that the
// repository contains.
func (w *work) missing(have runner.Packages) []string {
	available := w.available()
	var out []string
	for _, required := range w.want {
		cs := choices(required)
		if slices.ContainsFunc(cs, have.Has) {
			continue
		}
		i := max(0, slices.IndexFunc(cs, func(c string) bool { _, ok := available[c]; return ok }))
		out = append(out, cs[i])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// available returns the IDs of the repository's packages by name.
func (w *work) available() map[string][]string {
	out := map[string][]string{}
	for _, m := range w.repo.Members {
		name, rest, ok := strings.Cut(m.Package, " ")
		if !ok {
			continue
		}
		id := name
		if w.format() == manifest.RPM {
			_, arch, _ := strings.Cut(rest, "(")
			id += "." + strings.TrimSuffix(arch, ")")
		}
		out[name] = append(out[name], id)
	}
	return out
}

func job(h *steps.Host) runner.Job {
	return runner.Job{Name: "packages-" + h.Cluster.Metadata.Name}
}

// workDir returns the working folder of an installation. It exists only during one.
func workDir(h *steps.Host) string { return path.Join(path.Dir(op.RecordDir(h)), "packages") }

// jobRunning reports whether the job of an earlier run is still running.
func jobRunning(ctx context.Context, h *steps.Host) (bool, error) {
	s, err := h.Job(ctx, job(h), 0)
	return s.Running, err
}

// finish waits for the job of an earlier run and clears it. It ignores the job's exit
// status: the caller queries the packages afterwards.
func finish(ctx context.Context, h *steps.Host) error {
	s, err := h.Job(ctx, job(h), 0)
	if err != nil || !s.Exists {
		return err
	}
	if s.Running {
		h.Log.InfoContext(ctx, "waiting for an earlier run's installation or removal of packages to end")
	}
	_, err = h.WaitJob(ctx, job(h))
	if runner.Refused(err) {
		h.Log.WarnContext(ctx, "the earlier installation or removal of packages failed", "err", err)
		return nil
	}
	return err
}

// Want installs what is missing.
func (p Installed) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	w, err := p.on(h)
	if err != nil {
		return nil, err
	}
	have, err := w.query(ctx)
	if err != nil {
		return nil, err
	}
	prior, recorded, err := recall(ctx, h, p)
	if err != nil {
		return nil, err
	}
	missing := w.missing(have)
	if len(missing) == 0 && !prior.Pending {
		return nil, nil
	}
	if len(have.Problems) > 0 {
		switch busy, err := jobRunning(ctx, h); {
		case err != nil:
			return nil, err
		case !busy:
			return nil, Broken(h, w.format(), have.Problems)
		}
	}
	c := &op.Change{
		What:  "install packages " + strings.Join(missing, ", ") + " (and their dependencies)",
		Diff:  listed("+", missing),
		Apply: func(ctx context.Context, _ *steps.Host) error { return p.install(ctx, w) },
		Undo:  func(ctx context.Context, h *steps.Host) error { return p.undo(ctx, h, prior, recorded) },
	}
	if len(missing) == 0 {
		c.What, c.Diff = "finish the installation of packages", ""
	}
	return c, nil
}

func listed(sign string, names []string) string {
	lines := make([]string, len(names))
	for i, n := range names {
		lines[i] = "  " + sign + " " + n
	}
	return strings.Join(lines, "\n")
}

// install installs the missing packages and records the result.
func (p Installed) install(ctx context.Context, w *work) error {
	if err := finish(ctx, w.h); err != nil {
		return err
	}
	before, err := w.query(ctx)
	if err != nil {
		return err
	}
	e, err := p.announce(ctx, w, before)
	if err != nil {
		return err
	}
	now := before
	if missing := w.missing(before); len(missing) > 0 {
		if err := w.installNames(ctx, missing); err != nil {
			return w.explain(err)
		}
		if now, err = w.query(ctx); err != nil {
			return err
		}
	}
	if err := w.h.RemoveAll(ctx, workDir(w.h)); err != nil { // may be left over from a killed run
		return err
	}
	if missing := w.missing(now); len(missing) > 0 {
		return fmt.Errorf("the installation succeeded, but these packages are missing: %s", strings.Join(missing, ", "))
	}
	w.report(ctx, before, now)
	for _, id := range e.Packages.May {
		if x, ok := now.Find(id); ok && x.State != runner.StateConfig && !slices.Contains(e.Packages.Came, id) {
			e.Packages.Came = append(e.Packages.Came, id)
		}
	}
	slices.Sort(e.Packages.Came)
	e.Packages.May, e.Pending = nil, false
	return rewrite(ctx, w.h, p, e)
}

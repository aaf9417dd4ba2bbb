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

// Installed are packages of the host's operating system, out of the repository that
// the bundle holds for it. What is there in whatever version stays as it is, but
// for what a package that comes needs newer. What comes is on record, and a
// removal takes exactly that away again.
type Installed struct {
	// Systems are the operating systems whose packages the bundle holds, as
	// SystemOf names them.
	Systems []string
	// Pick chooses among what the repository was made for; nil takes all of it.
	Pick func(h *steps.Host, want []string) []string
}

// lockWait is how long other installations on a host are waited for.
const lockWait = 10 * time.Minute

// SystemOf names a host's operating system as Needs do: "debian-12".
func SystemOf(f runner.Facts) string {
	return manifest.Platform{Distribution: f.OS.ID, Release: f.OS.VersionID}.System()
}

func (p Installed) String() string { return "packages" }

// Needs are the repositories of all systems: which one a host needs is known when
// it is reached.
func (p Installed) Needs() []manifest.Need {
	var out []manifest.Need
	for _, s := range p.Systems {
		out = append(out, manifest.Need{Kind: manifest.Packages, Name: s})
	}
	return out
}

// work is what a run knows of the packages of one host.
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
		return nil, NotCarried(h, p.Systems)
	}
	w := &work{h: h, need: manifest.Need{Kind: manifest.Packages, Name: system}}
	var err error
	if w.repo, err = h.Repository(w.need); err != nil {
		return nil, err
	}
	if w.repo.Packages == nil {
		return nil, fmt.Errorf("the lock does not say what the packages of %s are for", system)
	}
	if w.want = w.repo.Packages.Want; p.Pick != nil {
		w.want = p.Pick(h, w.want)
	}
	return w, nil
}

func (w *work) format() string { return w.repo.Packages.Format }

// choices splits a wish into those of which one will do.
func choices(wish string) []string {
	var out []string
	for c := range strings.SplitSeq(wish, "|") {
		out = append(out, strings.TrimSpace(c))
	}
	return out
}

// look asks the host what it has.
func (w *work) look(ctx context.Context) (runner.Packages, error) {
	var names []string
	for _, wish := range w.want {
		names = append(names, choices(wish)...)
	}
	return w.h.Packages(ctx, w.format(), names...)
}

// missing gives, of each wish that nothing on the host answers, the package that
// the repository has for it.
func (w *work) missing(have runner.Packages) []string {
	carried := w.offers()
	var out []string
	for _, wish := range w.want {
		cs := choices(wish)
		if slices.ContainsFunc(cs, have.Has) {
			continue
		}
		i := max(0, slices.IndexFunc(cs, func(c string) bool { _, ok := carried[c]; return ok }))
		out = append(out, cs[i])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// offers gives the packages of the repository, IDs by name.
func (w *work) offers() map[string][]string {
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

// workDir is where an installation works; it is not there between two.
func workDir(h *steps.Host) string { return path.Join(path.Dir(op.RecordDir(h)), "packages") }

// underWay tells whether an earlier run's job is still at it.
func underWay(ctx context.Context, h *steps.Host) (bool, error) {
	s, err := h.Job(ctx, job(h), 0)
	return s.Running, err
}

// finish waits for the job of an earlier run, and has the host forget it. How it
// ended, a look at the packages tells.
func finish(ctx context.Context, h *steps.Host) error {
	s, err := h.Job(ctx, job(h), 0)
	if err != nil || !s.Exists {
		return err
	}
	if s.Running {
		h.Log.InfoContext(ctx, "packages are being installed or removed there since an earlier run: waiting for that to end")
	}
	_, err = h.WaitJob(ctx, job(h))
	if runner.Refused(err) {
		h.Log.WarnContext(ctx, "it failed", "err", err)
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
	have, err := w.look(ctx)
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
	if len(have.Trouble) > 0 {
		switch busy, err := underWay(ctx, h); {
		case err != nil:
			return nil, err
		case !busy:
			return nil, Broken(h, w.format(), have.Trouble)
		}
	}
	c := &op.Change{
		What:  "install packages " + strings.Join(missing, ", ") + " (and what they need)",
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

// install brings what is missing, and notes what came of it.
func (p Installed) install(ctx context.Context, w *work) error {
	if err := finish(ctx, w.h); err != nil {
		return err
	}
	before, err := w.look(ctx)
	if err != nil {
		return err
	}
	e, err := p.announce(ctx, w, before)
	if err != nil {
		return err
	}
	now := before
	if missing := w.missing(before); len(missing) > 0 {
		if err := w.bring(ctx, missing); err != nil {
			return w.explain(err)
		}
		if now, err = w.look(ctx); err != nil {
			return err
		}
	}
	if err := w.h.RemoveAll(ctx, workDir(w.h)); err != nil { // of a run that was killed, too
		return err
	}
	if missing := w.missing(now); len(missing) > 0 {
		return fmt.Errorf("installed, and yet these are not there: %s", strings.Join(missing, ", "))
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

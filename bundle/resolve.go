package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/versions"
)

// ResolveRequest specifies a config to resolve.
type ResolveRequest struct {
	Cluster *manifest.Cluster
	Catalog *versions.Catalog
	File    string // name of the config in messages
	Dir     string // folder that paths in the config are relative to
	Path    string // path of the lock
	Update  bool   // drop the pins whose values come from upstream
	// Check validates what the config resolves to against the config's plans. Warn receives
	// problems that do not stop the resolution.
	Check func(*manifest.Cluster, *manifest.Lock) (manifest.Problems, error)
	Warn  func(manifest.Problems)
}

// Resolution is a config and the lock it resolves to, before upstream is queried.
type Resolution struct {
	ResolveRequest
	Config   []byte         // without secrets
	Resolved *manifest.Lock // from the version matrix only
	Previous *manifest.Lock // the lock that exists, or nil
	Lock     *manifest.Lock // Resolved with the pins of Previous that still match
	Changes  []Change
}

// Resolve resolves a config with the version matrix and adopts the pins of the existing
// lock. Nothing is fetched.
func Resolve(q ResolveRequest) (*Resolution, error) {
	r := &Resolution{ResolveRequest: q}
	var err error
	if r.Config, err = q.Cluster.Public(); err != nil {
		return nil, fmt.Errorf("write the config without its secrets: %w", err)
	}
	var problems manifest.Problems
	r.Resolved, problems = q.Catalog.Resolve(q.Cluster)
	if err := problems.In(q.File).Err(); err != nil {
		return nil, err
	}
	q.Warn(problems)
	warnings, err := q.Check(q.Cluster, r.Resolved)
	if err != nil {
		return nil, &refusal.Error{Err: fmt.Errorf("%s: %w", q.File, err), Kind: refusal.Usage,
			Advice: "list the platforms of all hosts in spec.bundle.platforms, and add what the version matrix lacks with --versions"}
	}
	q.Warn(warnings.In(q.File))
	r.Resolved.Config = digest.FromBytes(r.Config).String()
	if err := r.pinLocal(); err != nil {
		return nil, err
	}
	if err := CheckValues(q.Cluster, q.Dir).In(q.File).Err(); err != nil {
		return nil, err
	}
	if r.Previous, err = ReadLock(q.Path); err != nil {
		return nil, err
	}
	base := r.Previous
	if q.Update && base != nil {
		base = dropUpstreamPins(base)
	}
	r.Lock, r.Changes = Adopt(AdoptDiscovered(r.Resolved, base), base)
	r.warnUnmirrored(r.Lock, nil)
	return r, nil
}

// warnUnmirrored warns of what l is downloaded from upstream for although a zone is set, and before was
// not.
func (r *Resolution) warnUnmirrored(l, before *manifest.Lock) {
	sources := r.Cluster.Spec.Sources
	warnings := sources.Unmirrored(l)
	if before != nil {
		said := sources.Unmirrored(before)
		warnings = slices.DeleteFunc(warnings, func(p manifest.Problem) bool { return slices.Contains(said, p) })
	}
	r.Warn(warnings.In(r.File))
}

// pinLocal pins the local files and folders of the config: the lock must change when they
// do.
func (r *Resolution) pinLocal() error {
	for i, x := range r.Resolved.Artifacts {
		if !x.Local() {
			continue
		}
		pinned, err := fetch.Local(r.Dir, x)
		if err != nil {
			return &refusal.Error{Err: fmt.Errorf("%s: add-on %s: %w", r.File, x.Name, err), Kind: refusal.Usage,
				Advice: "a path is relative to the config's folder; an address begins with a scheme such as https://"}
		}
		r.Resolved.Artifacts[i] = pinned
	}
	return nil
}

// Current reports whether the existing lock matches the config.
func (r *Resolution) Current() bool { return r.Previous != nil && len(r.Changes) == 0 }

// Drift returns why the existing lock does not match the config; nil if it does.
func (r *Resolution) Drift() error {
	const advice = "run `kubexm bundle lock -f …`, review the changes, and commit the lock"
	switch {
	case r.Current():
		return nil
	case r.Previous == nil:
		return &refusal.Error{Err: fmt.Errorf("no lock exists at %s", r.Path), Kind: refusal.Content, Advice: advice}
	}
	return &refusal.Error{Err: fmt.Errorf("%s does not match the config:%s", r.Path, ListChanges(r.Changes, 20)), Kind: refusal.Content, Advice: advice}
}

// Pin completes the lock and writes it if it changed. found receives the images that charts
// and manifests reference, with the lock that contains them, before they are pinned, so
// that an error about one of them can be explained.
func (r *Resolution) Pin(ctx context.Context, c *fetch.Client, o PinOptions, found func(*manifest.Lock, []ReferencedImage)) (*manifest.Lock, error) {
	if r.Previous != nil {
		o.Previous = r.Previous.Serial
	}
	l, err := Pin(ctx, c, WithoutUnpinned(r.Lock), o)
	if err != nil {
		return nil, err
	}
	all, err := r.Discover(ctx, c, l)
	if err != nil {
		return nil, err
	}
	l = AddDiscovered(l, all)
	r.warnUnmirrored(l, r.Lock)
	found(l, all)
	if l, err = Pin(ctx, c, l, o); err != nil {
		return nil, err
	}
	if _, changes := Adopt(l, r.Previous); len(changes) == 0 && r.Previous != nil {
		return r.Previous, nil // pinned again without a difference
	}
	text, err := manifest.EncodeLock(l)
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(r.Path, text, 0o644); err != nil {
		return nil, fmt.Errorf("write lock: %w", err)
	}
	return l, nil
}

// Discover returns the images that the config's add-ons and pod network use.
func (r *Resolution) Discover(ctx context.Context, c *fetch.Client, l *manifest.Lock) ([]ReferencedImage, error) {
	found, err := Discover(ctx, c, r.Cluster, l)
	if wrong, ok := errors.AsType[manifest.Problems](err); ok {
		return nil, wrong.In(r.File)
	}
	return found, err
}

// ReadLock returns the lock at path, or nil if there is none.
func ReadLock(path string) (*manifest.Lock, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, problems := manifest.DecodeLock(f)
	if err := problems.In(path).Err(); err != nil {
		return nil, err
	}
	return l, nil
}

// dropUpstreamPins drops the pins whose values come from upstream, so that they are queried again:
// image tags, and digests that only upstream published.
func dropUpstreamPins(l *manifest.Lock) *manifest.Lock {
	c := *l
	c.Images = nil
	c.Artifacts = nil
	for _, a := range l.Artifacts {
		if a.Trust == manifest.FromCatalog || a.Trust == manifest.FromConfig {
			c.Artifacts = append(c.Artifacts, a)
		}
	}
	return &c
}

// ListChanges formats changes as lines, at most limit of them.
func ListChanges(changes []Change, limit int) string {
	var b strings.Builder
	for i, c := range changes {
		if i == limit {
			fmt.Fprintf(&b, "\n  … and %d more", len(changes)-limit)
			break
		}
		b.WriteString("\n  " + c.String())
	}
	return b.String()
}

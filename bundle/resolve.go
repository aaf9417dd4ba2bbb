package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/versions"
)

// ResolveRequest is a config that is to be resolved.
type ResolveRequest struct {
	Cluster *manifest.Cluster
	Catalog *versions.Catalog
	File    string // of the config, as messages name it
	Dir     string // that paths in the config start from
	Path    string // of the lock
	Update  bool   // drop the pins that upstream decides
	// Check holds what the config resolves to against the plans of the config, and Warn is
	// told what was found that does not end the resolving.
	Check func(*manifest.Cluster, *manifest.Lock) (manifest.Problems, error)
	Warn  func(manifest.Problems)
}

// Resolution is a config and what it resolves to, before anyone asks upstream.
type Resolution struct {
	ResolveRequest
	Config   []byte         // without secrets
	Resolved *manifest.Lock // by the matrix alone
	Previous *manifest.Lock // the lock that exists, or nil
	Lock     *manifest.Lock // resolved with the pins of Previous that still hold
	Changes  []Change
}

// Resolve resolves a config against the matrix, and adopts what the lock that exists has
// pinned. Nothing is fetched.
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
			Advice: "name the platforms of all hosts in spec.bundle.platforms, and what the version matrix does not know by --versions"}
	}
	q.Warn(append(warnings, q.Cluster.Spec.Sources.Unmirrored(r.Resolved)...).In(q.File))
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
		base = forget(base)
	}
	r.Lock, r.Changes = Adopt(Foresee(r.Resolved, base), base)
	return r, nil
}

// pinLocal reads what the config names on this machine: a lock tells whether it
// has changed.
func (r *Resolution) pinLocal() error {
	for i, x := range r.Resolved.Artifacts {
		if !x.Local() {
			continue
		}
		pinned, err := fetch.Local(r.Dir, x)
		if err != nil {
			return &refusal.Error{Err: fmt.Errorf("%s: add-on %s: %w", r.File, x.Name, err), Kind: refusal.Usage,
				Advice: "a path starts from the config's folder; an address has a scheme, as in https://"}
		}
		r.Resolved.Artifacts[i] = pinned
	}
	return nil
}

// Current tells whether the lock that exists answers the config.
func (r *Resolution) Current() bool { return r.Previous != nil && len(r.Changes) == 0 }

// Drift says why the lock that exists does not answer the config; nil where it does.
func (r *Resolution) Drift() error {
	const advice = "run `kubexm bundle lock -f …`, look at what changed, and commit it"
	switch {
	case r.Current():
		return nil
	case r.Previous == nil:
		return &refusal.Error{Err: fmt.Errorf("there is no lock at %s", r.Path), Kind: refusal.Content, Advice: advice}
	}
	return &refusal.Error{Err: fmt.Errorf("%s does not answer the config:%s", r.Path, ListChanges(r.Changes, 20)), Kind: refusal.Content, Advice: advice}
}

// Pin completes the lock and writes it, when something of it changed. found is told the
// images that charts and manifests ask for, with the lock that has them, before they are
// asked for: one that cannot be had has its reason there.
func (r *Resolution) Pin(ctx context.Context, c *fetch.Client, o PinOptions, found func(*manifest.Lock, []Found)) (*manifest.Lock, error) {
	if r.Previous != nil {
		o.Previous = r.Previous.Serial
	}
	l, err := Pin(ctx, c, Certain(r.Lock), o)
	if err != nil {
		return nil, err
	}
	all, err := r.Discover(ctx, c, l)
	if err != nil {
		return nil, err
	}
	l = AddFound(l, all)
	found(l, all)
	if l, err = Pin(ctx, c, l, o); err != nil {
		return nil, err
	}
	if _, changes := Adopt(l, r.Previous); len(changes) == 0 && r.Previous != nil {
		return r.Previous, nil // asked anew, and nothing was new
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

// Discover finds the images of what the config applies.
func (r *Resolution) Discover(ctx context.Context, c *fetch.Client, l *manifest.Lock) ([]Found, error) {
	found, err := Discover(ctx, c, r.Cluster, l)
	if wrong, ok := errors.AsType[manifest.Problems](err); ok {
		return nil, wrong.In(r.File)
	}
	return found, err
}

// ReadLock gives the lock at path, or nil where there is none.
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

// forget drops the pins that upstream decides, so that they are asked for anew:
// image tags, and digests that nobody but upstream vouches for.
func forget(l *manifest.Lock) *manifest.Lock {
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

// ListChanges gives changes as lines, the first ones only when there are many.
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/versions"
)

// resolution is a config and what it resolves to, before anyone asks upstream.
type resolution struct {
	cluster  *manifest.Cluster
	file     string // of the config
	config   []byte // without secrets
	resolved *manifest.Lock
	previous *manifest.Lock // the lock that stands, or nil
	lock     *manifest.Lock // resolved with the pins of previous that still hold
	changes  []bundle.Change
	path     string // of the lock
}

// pinLocal reads what the config names on this machine: a lock tells whether it
// has changed.
func pinLocal(f *sourceFlags, l *manifest.Lock) error {
	for i, x := range l.Artifacts {
		if !x.Local() {
			continue
		}
		pinned, err := fetch.Local(f.base(), x)
		if err != nil {
			return &refusal.Error{Err: fmt.Errorf("%s: add-on %s: %w", f.config, x.Name, err), Kind: refusal.Usage,
				Advice: "a path starts from the config's folder; an address has a scheme, as in https://"}
		}
		l.Artifacts[i] = pinned
	}
	return nil
}

// base is the folder that paths in the config start from.
func (f *sourceFlags) base() string { return folderOf(f.config) }

// folderOf is the folder that paths in a config start from.
func folderOf(config string) string {
	if config == "-" {
		return "."
	}
	return filepath.Dir(config)
}

// current tells whether the lock that stands answers the config.
func (r *resolution) current() bool { return r.previous != nil && len(r.changes) == 0 }

// resolve reads the config, the matrix and the lock that stands.
func (a *app) resolve(f *sourceFlags) (*resolution, error) {
	cluster, err := a.loadCluster(f.config, f.sources)
	if err != nil {
		return nil, err
	}
	if err := a.zone(&cluster.Spec.Sources); err != nil {
		return nil, err
	}
	r := &resolution{cluster: cluster, file: f.config, path: f.lockPath()}
	if r.config, err = cluster.Public(); err != nil {
		return nil, fmt.Errorf("write the config without its secrets: %w", err)
	}
	catalog, err := a.loadCatalog(f.versions)
	if err != nil {
		return nil, err
	}
	var problems manifest.Problems
	r.resolved, problems = catalog.Resolve(cluster)
	if err := problems.In(f.config).Err(); err != nil {
		return nil, err
	}
	a.printWarnings(problems)
	if err := site.Complete(cluster, r.resolved); err != nil {
		return nil, &refusal.Error{Err: fmt.Errorf("%s: %w", f.config, err), Kind: refusal.Usage,
			Advice: "name the platforms of all hosts in spec.bundle.platforms, and what the version matrix does not know by --versions"}
	}
	a.printWarnings(append(site.CarriedOnly(cluster, r.resolved), direct(cluster.Spec.Sources, r.resolved)...).In(f.config))
	r.resolved.Config = digest.FromBytes(r.config).String()
	if err := pinLocal(f, r.resolved); err != nil {
		return nil, err
	}
	if err := bundle.CheckValues(cluster, f.base()).In(f.config).Err(); err != nil {
		return nil, err
	}
	if r.previous, err = readLock(r.path); err != nil {
		return nil, err
	}
	base := r.previous
	if f.update && base != nil {
		base = forget(base)
	}
	r.lock, r.changes = bundle.Adopt(bundle.Foresee(r.resolved, base), base)
	return r, nil
}

// loadCatalog gives the embedded matrix with the overlay of a file, if any.
func (a *app) loadCatalog(path string) (*versions.Catalog, error) {
	var overlays []io.Reader
	if path != "" {
		f, err := os.Open(path)
		if err != nil {
			return nil, &refusal.Error{Err: err, Kind: refusal.Usage}
		}
		defer f.Close()
		overlays = append(overlays, f)
	}
	c, problems := versions.Load(overlays...)
	if err := problems.In(path).Err(); err != nil {
		return nil, err
	}
	a.printWarnings(problems)
	return c, nil
}

// readLock gives the lock at path, or nil where none stands.
func readLock(path string) (*manifest.Lock, error) {
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

// client is the network side of a build, with progress shown to the user.
func (a *app) client(f *sourceFlags, cache *fetch.Cache, cluster *manifest.Cluster, p *console.Progress) (*fetch.Client, error) {
	return fetch.New(fetch.Options{
		Cache: cache, Sources: cluster.Spec.Sources, Log: a.log, Progress: p, Parallel: f.parallel,
		UserAgent: "kubexm/" + ownVersion(), Base: f.base(), Helm: a.helmRepositories(),
		Note: p.Note,
	})
}

// pin completes r's lock and writes it, when something of it changed.
func (a *app) pin(ctx context.Context, r *resolution, c *fetch.Client, parallel int) (*manifest.Lock, error) {
	now, err := a.now()
	if err != nil {
		return nil, err
	}
	o := bundle.PinOptions{Parallel: parallel, Now: now}
	if r.previous != nil {
		o.Previous = r.previous.Serial
	}
	l, err := bundle.Pin(ctx, c, bundle.Certain(r.lock), o)
	if err != nil {
		return nil, refused(err)
	}
	found, err := a.discover(ctx, r, c, l)
	if err != nil {
		return nil, err
	}
	l = bundle.AddFound(l, found)
	a.sayFound(r.cluster, l, found) // before they are asked for: one that cannot be had has its reason here
	if l, err = bundle.Pin(ctx, c, l, o); err != nil {
		return nil, refused(err)
	}
	if _, changes := bundle.Adopt(l, r.previous); len(changes) == 0 && r.previous != nil {
		return r.previous, nil // asked anew, and nothing was new
	}
	text, err := manifest.EncodeLock(l)
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(r.path, text, 0o644); err != nil {
		return nil, fmt.Errorf("write lock: %w", err)
	}
	return l, nil
}

// now is the time that goes into a new lock; SOURCE_DATE_EPOCH sets it, as
// reproducible-builds.org describes.
func (a *app) now() (time.Time, error) {
	s, ok := a.env("SOURCE_DATE_EPOCH")
	if !ok || s == "" {
		return time.Now(), nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, &refusal.Error{Err: fmt.Errorf("SOURCE_DATE_EPOCH=%q is not a number of seconds", s), Kind: refusal.Usage}
	}
	return time.Unix(n, 0), nil
}

// listChanges writes changes as lines, the first ones only when there are many.
func listChanges(changes []bundle.Change, limit int) string {
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

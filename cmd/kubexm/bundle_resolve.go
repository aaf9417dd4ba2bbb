package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/versions"
)

// base returns the folder that paths in the config are relative to.
func (f *sourceFlags) base() string { return folderOf(f.config) }

// folderOf returns the folder that paths in a config are relative to.
func folderOf(config string) string {
	if config == "-" {
		return "."
	}
	return filepath.Dir(config)
}

// resolve reads the config, the version matrix and the existing lock.
func (a *app) resolve(f *sourceFlags) (*bundle.Resolution, error) {
	cluster, err := a.loadCluster(f.config, f.sources)
	if err != nil {
		return nil, err
	}
	if err := a.zone(&cluster.Spec.Sources); err != nil {
		return nil, err
	}
	catalog, err := a.loadCatalog(f.versions)
	if err != nil {
		return nil, err
	}
	return bundle.Resolve(bundle.ResolveRequest{
		Cluster: cluster, Catalog: catalog, File: f.config, Dir: f.base(), Path: f.lockPath(), Update: f.update, Warn: a.printWarnings,
		Check: func(c *manifest.Cluster, l *manifest.Lock) (manifest.Problems, error) {
			return site.AddonWarnings(c, l), site.Complete(c, l)
		},
	})
}

// loadCatalog returns the embedded matrix, with the overlay of the file at path if path
// is not empty.
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

// client returns the HTTP and registry client of a build; it reports progress to p.
func (a *app) client(f *sourceFlags, cache *fetch.Cache, cluster *manifest.Cluster, p *console.Progress) (*fetch.Client, error) {
	return fetch.New(fetch.Options{
		Cache: cache, Sources: cluster.Spec.Sources, Log: a.log, Progress: p, Parallel: f.parallel,
		UserAgent: "kubexm/" + ownVersion(), Base: f.base(), Helm: fetch.HelmRepositories(a.env),
		Note: p.Note,
	})
}

// pin completes r's lock, and writes it if it changed.
func (a *app) pin(ctx context.Context, r *bundle.Resolution, c *fetch.Client, parallel int) (*manifest.Lock, error) {
	now, err := a.now()
	if err != nil {
		return nil, err
	}
	l, err := r.Pin(ctx, c, bundle.PinOptions{Parallel: parallel, Now: now}, func(l *manifest.Lock, found []bundle.ReferencedImage) {
		a.noteFoundImages(r.Cluster, l, found)
	})
	return l, report.Refused(err)
}

// now returns the creation time of a new lock: SOURCE_DATE_EPOCH if it is set (see
// reproducible-builds.org), else the current time.
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

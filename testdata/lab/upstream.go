package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/lab/components"
	"github.com/mensylisir/kubexm/testdata/lab/images"
	"github.com/mensylisir/kubexm/testdata/lab/mirror"
	"github.com/mensylisir/kubexm/testdata/upstream"
	"github.com/mensylisir/kubexm/versions"
)

// Source says what a lab's upstream is made of.
type Source struct {
	Config     string // the cluster config whose artifacts are served
	Kubernetes string // the version to build; "" is the table's
	// Components are other versions of components than the table's: "containerd=v1.7.27".
	Components []string
	Root       string // the checkout
	Cache      string
	Log        io.Writer
	// Files are further files that are served: address → file on this machine.
	Files map[string]string
	// Layouts are further OCI layouts, all of whose images are served.
	Layouts []string
}

// Upstream is a server of real components at the real addresses' layout.
type Upstream struct {
	*upstream.Server

	rows  []components.Component
	notes []string // what images are that are made of Debian's packages
}

// choices are which components a Kubernetes version takes of those that the
// lab builds, by the matrix's names. The rest it asks for itself.
var choices = []string{"containerd", "runc", "cni-plugins", "crictl", "flannel", "calico", "cilium", "registry", "helm"}

// NewUpstream builds what the cache lacks of components, images and archives,
// and serves what the config's lock names of them.
func NewUpstream(ctx context.Context, s Source) (*Upstream, error) {
	rows, err := components.Table(s.Kubernetes)
	if err != nil {
		return nil, err
	}
	if rows, err = components.Choose(rows, s.Components...); err != nil {
		return nil, err
	}
	lock, err := resolve(s.Config, rows)
	if err != nil {
		return nil, err
	}
	arch, root := archOf(lock), Debian12
	rows = components.For(rows, arch)
	if arch != "" {
		root = MachineARM64
	}
	rootfs, err := Rootfs(ctx, s.Cache, root, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, fmt.Errorf("make the hosts' root file system: %w", err)
	}
	b := &components.Builder{Root: s.Root, Cache: s.Cache, Log: s.Log, Sysroot: rootfs}
	if err := b.Build(ctx, rows); err != nil {
		return nil, err
	}
	layout, err := images.Layout(ctx, s.Cache, rootfs, rows, s.Log)
	if err != nil {
		return nil, fmt.Errorf("make images: %w", err)
	}
	balancers, err := balancersOf(ctx, s, lock, rootfs)
	if err != nil {
		return nil, fmt.Errorf("make images: %w", err)
	}
	charts, err := images.OfCharts(lock)
	if err != nil {
		return nil, err
	}
	if err := widen(lock, rows, charts, s.Layouts); err != nil {
		return nil, err
	}
	real := upstream.Real{Files: map[string]string{}, Layouts: append([]string{layout}, s.Layouts...)}
	if balancers.Layout != "" {
		real.Layouts = append(real.Layouts, balancers.Layout)
	}
	asked, more, notes, err := askedOf(ctx, s, b, lock, rootfs)
	if err != nil {
		return nil, fmt.Errorf("make images: %w", err)
	}
	if asked != "" {
		real.Layouts = append(real.Layouts, asked)
	}
	for _, a := range lock.Artifacts {
		if file, ok := s.Files[a.Address]; ok {
			real.Files[a.Address] = file
			continue
		}
		file, err := published(s.Cache, slices.Concat(rows, more), a)
		if err != nil {
			return nil, err
		}
		if file != "" {
			real.Files[a.Address] = file
		}
	}
	server, err := upstream.New(ctx, lock, upstream.Options{Real: real})
	if err != nil {
		return nil, err
	}
	return &Upstream{Server: server, rows: rows, notes: append(balancers.Notes, notes...)}, nil
}

// archOf gives the architecture of the hosts that a lock is for; "" is this machine's.
func archOf(lock *manifest.Lock) string {
	if len(lock.Platforms) == 0 || slices.ContainsFunc(lock.Platforms, func(p manifest.Platform) bool { return p.Arch == runtime.GOARCH }) {
		return ""
	}
	return lock.Platforms[0].Arch
}

// askedOf builds what only some configs ask for, and makes its images; layout is "" if the lock
// has none of them.
func askedOf(ctx context.Context, s Source, b *components.Builder, lock *manifest.Lock, rootfs string) (layout string, rows []components.Component, notes []string, err error) {
	if rows, err = components.Asked(); err != nil {
		return "", nil, nil, err
	}
	var references []string
	for _, image := range lock.Images {
		references = append(references, image.Reference)
	}
	if rows, err = images.AskedFor(rows, references); err != nil || len(rows) == 0 {
		return "", nil, nil, err
	}
	rows = components.For(rows, archOf(lock))
	if err := b.Build(ctx, rows); err != nil {
		return "", nil, nil, err
	}
	for _, c := range rows {
		if c.StandsFor != "" {
			notes = append(notes, fmt.Sprintf("%s is the lab's own program, and stands for %s.", c.Name, c.StandsFor))
		}
	}
	layout, err = images.LayoutAskedFor(ctx, s.Cache, rootfs, mirror.Open(s.Cache).Package, rows, s.Log)
	return layout, rows, notes, err
}

// balancersOf makes images of the load balancers that a lock has, of the mirror's packages.
func balancersOf(ctx context.Context, s Source, lock *manifest.Lock, rootfs string) (images.Balancers, error) {
	var references []string
	for _, image := range lock.Images {
		if !slices.Contains(references, image.Reference) { // two sets may have the same one
			references = append(references, image.Reference)
		}
	}
	return images.MakeBalancers(ctx, s.Cache, rootfs, mirror.Open(s.Cache).Package, references, s.Log)
}

// widen has the server know every image that the lab makes: charts and manifests
// ask for some that no config lists. What lies beside a config is not served, and
// charts are served where a test publishes them, but for those of the matrix.
func widen(lock *manifest.Lock, rows []components.Component, charts, layouts []string) error {
	lock.Artifacts = slices.DeleteFunc(lock.Artifacts, func(a manifest.Artifact) bool {
		return a.Kind == manifest.Chart && a.Trust != manifest.FromCatalog || a.Repository == "" && !strings.Contains(a.Address, "://")
	})
	all, err := images.References(rows)
	if err != nil {
		return err
	}
	all = append(all, charts...)
	for _, dir := range layouts {
		more, err := images.Names(dir)
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	for _, ref := range all {
		if !slices.ContainsFunc(lock.Images, func(p manifest.ImagePin) bool { return p.Reference == ref }) {
			lock.Images = append(lock.Images, manifest.ImagePin{ID: "image/" + ref, Names: []string{ref}, Reference: ref, Sets: []string{lock.Sets[0].Name}})
		}
	}
	return nil
}

// WriteFiles writes sources.yaml and versions.yaml into dir, for kubexm to use
// the server at base. The latter names the digests of what the lab built, and
// which versions of it go together.
func (u *Upstream) WriteFiles(dir, base string) (upstream.Paths, error) {
	paths, err := u.Server.WriteFiles(dir, base, nil)
	if err != nil {
		return paths, err
	}
	pinned, err := os.ReadFile(paths.Versions)
	if err != nil {
		return paths, err
	}
	var doc versions.Document
	if err := yaml.Unmarshal(pinned, &doc); err != nil {
		return paths, fmt.Errorf("%s: %w", paths.Versions, err)
	}
	if err := choose(&doc, u.rows); err != nil {
		return paths, err
	}
	raw, err := doc.Encode(header(u.rows, u.notes, u.StandIns()))
	if err != nil {
		return paths, err
	}
	return paths, os.WriteFile(paths.Versions, raw, 0o644)
}

// resolve gives the lock of a config with the versions that the lab builds.
func resolve(config string, rows []components.Component) (*manifest.Lock, error) {
	raw, err := os.ReadFile(filepath.Clean(config))
	if err != nil {
		return nil, err
	}
	cluster, problems := manifest.Decode(strings.NewReader(unfilled(string(raw))))
	if err := problems.In(config).Err(); err != nil {
		return nil, err
	}
	var doc versions.Document
	if err := choose(&doc, rows); err != nil {
		return nil, err
	}
	overlay, err := doc.Encode("")
	if err != nil {
		return nil, err
	}
	catalog, problems := versions.Load(bytes.NewReader(overlay))
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("the lab's versions: %w", err)
	}
	lock, problems := catalog.Resolve(cluster)
	if err := problems.In(config).Err(); err != nil {
		return nil, fmt.Errorf("resolve %s: %w", config, err)
	}
	return lock, nil
}

// choose notes in doc that the lab's Kubernetes goes with the lab's other
// components, whatever newer ones the matrix knows.
func choose(doc *versions.Document, rows []components.Component) error {
	kubernetes, err := components.Find(rows, components.Kubernetes)
	if err != nil {
		return err
	}
	matrix, problems := versions.Load()
	if err := problems.Err(); err != nil {
		return err
	}
	spelled, asks, known := matrix.Release(versions.Kubernetes, kubernetes.Version)
	if !known {
		return fmt.Errorf("the matrix knows no Kubernetes %s", kubernetes.Version)
	}
	with := maps.Clone(asks.With)
	release := func(name, version string) *versions.Release {
		if doc.Components == nil {
			doc.Components = map[string]*versions.Component{}
		}
		c := doc.Components[name]
		if c == nil {
			c = &versions.Component{Versions: map[string]versions.Release{}}
			doc.Components[name] = c
		}
		r := c.Versions[version]
		return &r
	}
	asked, err := components.Asked()
	if err != nil {
		return err
	}
	for _, name := range choices {
		c, err := components.Find(slices.Concat(rows, asked), name)
		if err != nil {
			return err
		}
		version, r, known := matrix.Release(name, c.Version)
		if !known {
			return fmt.Errorf("the matrix knows no %s %s", name, c.Version)
		}
		with[name] = version
		if r.Kubernetes != "" { // the lab has no other one to offer
			own := release(name, version)
			own.Kubernetes = ">=1.24"
			doc.Components[name].Versions[version] = *own
		}
	}
	own := release(versions.Kubernetes, spelled)
	own.With = with
	doc.Components[versions.Kubernetes].Versions[spelled] = *own
	return nil
}

// header says what the versions file is, and what in it is not what it is named.
func header(rows []components.Component, notes, standIns []string) string {
	var b strings.Builder
	b.WriteString("# What the kubexm lab built from Go modules, for use with --versions: the digests are\n" +
		"# those of the lab's own builds, and the versions that go together are those it has.\n")
	for _, c := range rows {
		if c.StandsFor != "" {
			fmt.Fprintf(&b, "# %s is %s %s, and stands for %s.\n", c.Name, c.Module, c.Version, c.StandsFor)
		}
		for _, e := range c.Edits {
			fmt.Fprintf(&b, "# %s is built with a line of %s changed: testdata/lab/components/components.yaml.\n", c.Name, e.File)
		}
		if c.Add != "" {
			fmt.Fprintf(&b, "# %s is built with one file of the lab's own: testdata/lab/components/%s/%s.\n", c.Name, c.Name, c.Add)
		}
	}
	for _, note := range notes {
		b.WriteString("# " + note + "\n")
	}
	for _, id := range standIns {
		fmt.Fprintf(&b, "# %s is no program but a stand-in: the lab builds none.\n", id)
	}
	return b.String()
}

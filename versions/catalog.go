package versions

import (
	"cmp"
	"embed"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/mensylisir/kubexm/manifest"
)

//go:embed data
var embedded embed.FS

// Kubernetes is the component whose versions name the sets of a lock. It has
// no file of its own: it says which versions its releases ask for.
const Kubernetes = "kubernetes"

// Catalog is the matrix: the embedded data with the overlays laid over it. It
// does not change after Load.
type Catalog struct {
	components map[string]*Component
	images     map[string]string // reference → digest
	own        map[string]bool   // components that only an overlay knows
	systems    *systems
}

// Load reads the embedded matrix and lays each overlay over it, in order; see
// [Document] for their form. A version an overlay gives is that version,
// digest and all, from then on. Every problem of every overlay is reported; an
// overlay that is an *os.File is named in them.
func Load(overlays ...io.Reader) (*Catalog, manifest.Problems) {
	c, problems := loadEmbedded()
	if problems.Err() != nil {
		return nil, problems
	}
	return c.with(overlays)
}

func loadEmbedded() (*Catalog, manifest.Problems) {
	c := &Catalog{components: map[string]*Component{}, images: map[string]string{}, own: map[string]bool{}}
	var err error
	if c.systems, err = loadSystems(); err != nil {
		return nil, manifest.Problems{{Message: err.Error()}}
	}
	files, err := fs.Glob(embedded, "data/*.yaml")
	if err != nil {
		return nil, manifest.Problems{{Message: err.Error()}}
	}
	for _, name := range files {
		f, err := embedded.Open(name)
		if err != nil {
			return nil, manifest.Problems{{Message: err.Error()}}
		}
		doc, ps := decode(f)
		if ps = ps.In("versions/" + name); ps.Err() != nil {
			return nil, ps
		}
		maps.Copy(c.components, doc.Components)
		maps.Copy(c.images, doc.Images)
	}
	return c, nil
}

// with gives a copy of c with overlays laid over it.
func (c *Catalog) with(overlays []io.Reader) (*Catalog, manifest.Problems) {
	laid := &Catalog{components: maps.Clone(c.components), images: maps.Clone(c.images), own: maps.Clone(c.own), systems: c.systems}
	var all manifest.Problems
	for _, in := range overlays {
		doc, ps := decode(in)
		if ps.Err() == nil {
			ps = append(ps, laid.overlay(doc)...)
		}
		if named, ok := in.(interface{ Name() string }); ok {
			ps = ps.In(named.Name())
		}
		all = append(all, ps...)
	}
	if all.Err() != nil {
		return nil, all
	}
	return laid, all
}

// Names gives every component, sorted.
func (c *Catalog) Names() []string { return slices.Sorted(maps.Keys(c.components)) }

// Component gives one line of the matrix as it stands; the caller must not change it.
func (c *Catalog) Component(name string) (*Component, bool) {
	x, ok := c.components[name]
	return x, ok
}

// Versions gives the known versions of a component, the newest first.
func (c *Catalog) Versions(name string) []string {
	x, ok := c.components[name]
	if !ok {
		return nil
	}
	return newestFirst(slices.Collect(maps.Keys(x.Versions)))
}

// Release gives the whole of one version of a component: what holds for every
// version, and what this one says otherwise. A leading v may be left out.
func (c *Catalog) Release(name, version string) (string, Release, bool) {
	x, ok := c.components[name]
	if !ok {
		return "", Release{}, false
	}
	spelled, ok := x.spelling(version)
	if !ok {
		return "", Release{}, false
	}
	return spelled, x.release(spelled), true
}

// Default gives the version of a component that goes with a Kubernetes
// version when a config names none: what that very release asks for, else what
// the component it follows has, else the newest that goes with it and can be
// fetched.
func (c *Catalog) Default(name, kubernetes string) (string, bool) {
	spelled, k, ok := c.Release(Kubernetes, kubernetes)
	if !ok {
		return "", false
	}
	x, ok := c.components[name]
	if !ok {
		return "", false
	}
	if asked, ok := k.With[name]; ok {
		return x.spelling(asked)
	}
	if name == Kubernetes || x.Follows == Kubernetes {
		return x.spelling(spelled)
	}
	if _, ok := c.components[x.Follows]; ok && x.Follows != name {
		if followed, ok := c.Default(x.Follows, spelled); ok {
			return x.spelling(followed)
		}
		return "", false
	}
	for _, v := range c.Versions(name) {
		r := x.release(v)
		if r.Unresolved == "" && r.GoesWith(spelled) && !preRelease(v) {
			return v, true
		}
	}
	return "", false
}

// GoesWith reports whether r is meant for a Kubernetes version; a release
// that says nothing goes with all.
func (r Release) GoesWith(kubernetes string) bool {
	if r.Kubernetes == "" {
		return true
	}
	in, err := semver.NewConstraint(r.Kubernetes)
	if err != nil {
		return false
	}
	v, err := semver.NewVersion(kubernetes)
	return err == nil && in.Check(v)
}

// spelling finds a version as the matrix writes it, with or without a leading v.
func (c *Component) spelling(version string) (string, bool) {
	bare := strings.TrimPrefix(version, "v")
	for _, v := range []string{version, bare, "v" + bare} {
		if _, ok := c.Versions[v]; ok {
			return v, true
		}
	}
	return "", false
}

// newestFirst sorts versions; what is no semantic version comes last.
func newestFirst(vs []string) []string {
	parsed := make(map[string]*semver.Version, len(vs))
	for _, v := range vs {
		if x, err := semver.NewVersion(v); err == nil {
			parsed[v] = x
		}
	}
	slices.SortFunc(vs, func(a, b string) int {
		x, y := parsed[a], parsed[b]
		if x != nil && y != nil {
			return cmp.Or(y.Compare(x), strings.Compare(b, a))
		}
		if x == nil && y == nil {
			return strings.Compare(b, a)
		}
		if x == nil {
			return 1
		}
		return -1
	})
	return vs
}

// preRelease reports whether v is a release candidate or the like. What else
// follows a dash is a build of the same release: 3.5.16-0, 3.2.19-alpine.
func preRelease(v string) bool {
	x, err := semver.NewVersion(v)
	if err != nil {
		return false
	}
	kind, _, _ := strings.Cut(x.Prerelease(), ".")
	return slices.Contains([]string{"alpha", "beta", "rc", "pre", "dev"}, strings.TrimRight(kind, "0123456789"))
}

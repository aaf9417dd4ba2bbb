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

// Kubernetes is the component whose versions are the names of the sets of a lock. It has no
// files: its releases list the versions of other components that they require.
const Kubernetes = "kubernetes"

// Catalog is the version matrix: the embedded data merged with overlays. It does not change
// after Load.
type Catalog struct {
	components map[string]*Component
	images     map[string]string // reference → digest
	own        map[string]bool   // components that only an overlay contains
	systems    *systems
}

// Load reads the embedded version matrix and merges each overlay over it, in order; see
// [Document] for their format. A version in an overlay replaces the version in the matrix,
// with its digests. The problems of all overlays are in one report. If an overlay is an
// *os.File, its problems have the file name.
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

// with returns a copy of c merged with overlays.
func (c *Catalog) with(overlays []io.Reader) (*Catalog, manifest.Problems) {
	merged := &Catalog{components: maps.Clone(c.components), images: maps.Clone(c.images), own: maps.Clone(c.own), systems: c.systems}
	var all manifest.Problems
	for _, in := range overlays {
		doc, ps := decode(in)
		if ps.Err() == nil {
			ps = append(ps, merged.overlay(doc)...)
		}
		if named, ok := in.(interface{ Name() string }); ok {
			ps = ps.In(named.Name())
		}
		all = append(all, ps...)
	}
	if all.Err() != nil {
		return nil, all
	}
	return merged, all
}

// Names returns the names of all components, sorted.
func (c *Catalog) Names() []string { return slices.Sorted(maps.Keys(c.components)) }

// Component returns one component of the matrix. The caller must not change it.
func (c *Catalog) Component(name string) (*Component, bool) {
	x, ok := c.components[name]
	return x, ok
}

// Versions returns the known versions of a component, the newest first.
func (c *Catalog) Versions(name string) []string {
	x, ok := c.components[name]
	if !ok {
		return nil
	}
	return newestFirst(slices.Collect(maps.Keys(x.Versions)))
}

// Release returns one version of a component, with the fields that all versions share. It also
// returns the version as the matrix spells it. A leading v in version is optional.
func (c *Catalog) Release(name, version string) (string, Release, bool) {
	x, ok := c.components[name]
	if !ok {
		return "", Release{}, false
	}
	v, ok := x.spelling(version)
	if !ok {
		return "", Release{}, false
	}
	return v, x.release(v), true
}

// Default returns the version of a component for a Kubernetes version, if the config specifies
// none. It is the version that the Kubernetes release requires, else the version of the
// component that it follows, else the newest compatible version that can be downloaded.
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
		if r.Unresolved == "" && r.CompatibleWith(spelled) && !preRelease(v) {
			return v, true
		}
	}
	return "", false
}

// CompatibleWith reports whether r is compatible with a Kubernetes version. A release
// without a range is compatible with all.
func (r Release) CompatibleWith(kubernetes string) bool {
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

// spelling returns a version as the matrix spells it, with or without a leading v.
func (c *Component) spelling(version string) (string, bool) {
	bare := strings.TrimPrefix(version, "v")
	for _, v := range []string{version, bare, "v" + bare} {
		if _, ok := c.Versions[v]; ok {
			return v, true
		}
	}
	return "", false
}

// newestFirst sorts versions in descending order. Texts that are not semantic versions are last.
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

// preRelease reports whether v is a pre-release, such as a release candidate. Other suffixes
// after a dash are builds of the same release: 3.5.16-0, 3.2.19-alpine.
func preRelease(v string) bool {
	x, err := semver.NewVersion(v)
	if err != nil {
		return false
	}
	kind, _, _ := strings.Cut(x.Prerelease(), ".")
	return slices.Contains([]string{"alpha", "beta", "rc", "pre", "dev"}, strings.TrimRight(kind, "0123456789"))
}

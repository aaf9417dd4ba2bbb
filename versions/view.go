package versions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// FromRegistry is a further source of a digest, in addition to those of package manifest: the
// registry. The digest of an image is that of its tag at the time of pinning.
const FromRegistry manifest.Trust = "registry"

// ByFamily returns the names of all components by family, sorted within each family. Components
// without a family are last.
func (c *Catalog) ByFamily() []string {
	names := c.Names()
	rank := func(name string) int {
		if i := slices.Index(familyNames, c.components[name].Family); i >= 0 {
			return i
		}
		return len(familyNames)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return names
}

// Minors returns the newest patch release of each Kubernetes minor version, the newest first.
func (c *Catalog) Minors() []string {
	var out []string
	for _, v := range c.Versions(Kubernetes) {
		if len(out) == 0 || Minor(out[len(out)-1]) != Minor(v) {
			out = append(out, v)
		}
	}
	return out
}

// KubernetesRelease returns a Kubernetes release: v1.32.4, or the newest patch release for
// v1.32. The leading v is optional.
func (c *Catalog) KubernetesRelease(version string) (string, bool) {
	if v, _, ok := c.Release(Kubernetes, version); ok {
		return v, true
	}
	want := "v" + strings.TrimPrefix(version, "v")
	for _, v := range c.Minors() {
		if Minor(v) == want {
			return v, true
		}
	}
	return "", false
}

// Minor returns v1.32 for v1.32.4, and "" for an invalid version.
func Minor(version string) string {
	v, err := semver.NewVersion(version)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("v%d.%d", v.Major(), v.Minor())
}

// Compatible reports whether a version of a component is compatible with a Kubernetes release. A
// component that follows another one is compatible only in its default version.
func (c *Catalog) Compatible(name, version, kubernetes string) bool {
	spelled, r, ok := c.Release(name, version)
	if !ok {
		return false
	}
	if name == Kubernetes || c.components[name].Follows != "" {
		v, ok := c.Default(name, kubernetes)
		return ok && v == spelled
	}
	return r.CompatibleWith(kubernetes)
}

// DigestSources returns the sources of the digests of a release: first of its files or chart, then of
// its images.
func (c *Catalog) DigestSources(r Release, version string) []manifest.Trust {
	var out []manifest.Trust
	add := func(t manifest.Trust) {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	if r.Address == "" && r.Chart != "" && r.SHA256[anyArch] != "" {
		add(manifest.FromCatalog)
	}
	if r.Address != "" {
		archs := r.Architectures
		if len(archs) == 0 {
			archs = []string{anyArch}
		}
		for _, arch := range archs {
			if r.SHA256[arch] != "" {
				add(manifest.FromCatalog)
			} else {
				add(manifest.FromPublished)
			}
		}
	}
	for _, image := range r.Images {
		if c.images[expand(image.Reference, version, "")] != "" {
			add(manifest.FromCatalog)
		} else {
			add(FromRegistry)
		}
	}
	return out
}

package versions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// FromRegistry tells, beside manifest's sources of a digest, that a registry
// names it: an image's digest is the one its tag has when it is pinned.
const FromRegistry manifest.Trust = "registry"

// ByFamily gives every component, family by family as a reader looks for them,
// sorted within; own components without a family come last.
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

// Minors gives the newest patch of each Kubernetes minor, the newest minor first.
func (c *Catalog) Minors() []string {
	var out []string
	for _, v := range c.Versions(Kubernetes) {
		if len(out) == 0 || Minor(out[len(out)-1]) != Minor(v) {
			out = append(out, v)
		}
	}
	return out
}

// KubernetesRelease finds the release that a person means: v1.32.4, or v1.32
// for its newest patch, with or without the v.
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

// Minor gives v1.32 of v1.32.4, and "" of what is no version.
func Minor(version string) string {
	v, err := semver.NewVersion(version)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("v%d.%d", v.Major(), v.Minor())
}

// Together reports whether one version of a component goes with a Kubernetes
// release: one that follows another component does at the same version alone.
func (c *Catalog) Together(name, version, kubernetes string) bool {
	spelled, r, ok := c.Release(name, version)
	if !ok {
		return false
	}
	if name == Kubernetes || c.components[name].Follows != "" {
		v, ok := c.Default(name, kubernetes)
		return ok && v == spelled
	}
	return r.GoesWith(kubernetes)
}

// DigestSources says who vouches for what a release downloads: first its
// files, then its images.
func (c *Catalog) DigestSources(r Release, version string) []manifest.Trust {
	var out []manifest.Trust
	add := func(t manifest.Trust) {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
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

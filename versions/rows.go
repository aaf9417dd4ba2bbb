package versions

import (
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// MatrixRow is one component of the matrix.
type MatrixRow struct {
	Component  string            `json:"component" yaml:"component"`
	Family     string            `json:"family,omitempty" yaml:"family,omitempty"`
	Kind       manifest.Kind     `json:"kind,omitempty" yaml:"kind,omitempty"`
	About      string            `json:"about,omitempty" yaml:"about,omitempty"`
	Versions   int               `json:"versions" yaml:"versions"`
	Defaults   map[string]string `json:"defaults" yaml:"defaults"` // Kubernetes minor → version
	Unresolved string            `json:"unresolved,omitempty" yaml:"unresolved,omitempty"`
}

// NewMatrixRow describes a component, with its defaults for some Kubernetes minor versions.
func NewMatrixRow(c *Catalog, name string, minors []string) MatrixRow {
	x, _ := c.Component(name)
	r := MatrixRow{
		Component: name, Family: x.Family, Kind: x.Kind, About: x.About,
		Versions: len(x.Versions), Defaults: map[string]string{}, Unresolved: x.Unresolved,
	}
	for _, k := range minors {
		if v, ok := c.Default(name, k); ok {
			r.Defaults[Minor(k)] = v
		}
	}
	return r
}

// ReleaseRow is one version of a component.
type ReleaseRow struct {
	Component     string            `json:"component" yaml:"component"`
	Version       string            `json:"version" yaml:"version"`
	Kind          manifest.Kind     `json:"kind,omitempty" yaml:"kind,omitempty"`
	Kubernetes    string            `json:"kubernetes,omitempty" yaml:"kubernetes,omitempty"` // range of compatible versions
	Follows       string            `json:"follows,omitempty" yaml:"follows,omitempty"`       // component whose version it has
	Platforms     []string          `json:"platforms,omitempty" yaml:"platforms,omitempty,flow"`
	Digest        []manifest.Trust  `json:"digest,omitempty" yaml:"digest,omitempty,flow"`
	Address       string            `json:"address,omitempty" yaml:"address,omitempty"` // a template
	DigestAddress string            `json:"digestAddress,omitempty" yaml:"digestAddress,omitempty"`
	SHA256        map[string]string `json:"sha256,omitempty" yaml:"sha256,omitempty"`
	Images        []Image           `json:"images,omitempty" yaml:"images,omitempty"`
	Packages      []string          `json:"packages,omitempty" yaml:"packages,omitempty,flow"`
	Asks          map[string]string `json:"asksFor,omitempty" yaml:"asksFor,omitempty"`
	Unresolved    string            `json:"unresolved,omitempty" yaml:"unresolved,omitempty"`
}

// NewReleaseRow describes one version of a component; for an unknown version, the component.
func NewReleaseRow(c *Catalog, name, version string) ReleaseRow {
	x, _ := c.Component(name)
	v, r, ok := c.Release(name, version)
	if !ok {
		return ReleaseRow{Component: name, Kind: x.Kind, Packages: x.Packages, Unresolved: x.Unresolved}
	}
	row := ReleaseRow{
		Component: name, Version: v, Kind: x.Kind, Kubernetes: r.Kubernetes, Follows: x.Follows, Digest: c.DigestSources(r, v),
		Address: r.Address, DigestAddress: r.DigestAddress, SHA256: r.SHA256, Images: r.Images, Packages: r.Packages,
		Asks: r.With, Unresolved: r.Unresolved,
	}
	for _, arch := range r.Architectures {
		row.Platforms = append(row.Platforms, manifest.Platform{OS: "linux", Arch: arch}.String())
	}
	return row
}

// CompatibleVersions describes the Kubernetes versions that a version is compatible with.
func (r ReleaseRow) CompatibleVersions() string {
	switch {
	case r.Kubernetes != "" || r.Version == "":
		return r.Kubernetes
	case r.Component == Kubernetes:
		return ""
	case r.Follows != "":
		return "with " + r.Follows
	}
	return "any"
}

// DigestSources describes the sources of a version's digests, or why there are no files.
func (r ReleaseRow) DigestSources() string {
	switch {
	case r.Kind == Package:
		return "package " + strings.Join(r.Packages, ", ")
	case r.Unresolved != "":
		return "unresolved: " + r.Unresolved
	case len(r.Asks) > 0:
		return requires(r.Asks)
	}
	words := make([]string, len(r.Digest))
	for i, t := range r.Digest {
		words[i] = string(t)
	}
	return strings.Join(words, ", ")
}

// requires lists the versions that a Kubernetes release requires.
func requires(with map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(with)) {
		parts = append(parts, name+" "+with[name])
	}
	return "requires " + strings.Join(parts, ", ")
}

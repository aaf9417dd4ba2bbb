package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/versions"
)

// shownMinors is how many Kubernetes minors the matrix shows defaults for.
const shownMinors = 3

// matrixRow is one component of `kubexm versions`.
type matrixRow struct {
	Component  string            `json:"component" yaml:"component"`
	Family     string            `json:"family,omitempty" yaml:"family,omitempty"`
	Kind       manifest.Kind     `json:"kind,omitempty" yaml:"kind,omitempty"`
	About      string            `json:"about,omitempty" yaml:"about,omitempty"`
	Versions   int               `json:"versions" yaml:"versions"`
	Defaults   map[string]string `json:"defaults" yaml:"defaults"` // Kubernetes minor → version
	Unresolved string            `json:"unresolved,omitempty" yaml:"unresolved,omitempty"`
}

func newMatrixRow(c *versions.Catalog, name string, minors []string) matrixRow {
	x, _ := c.Component(name)
	r := matrixRow{
		Component: name, Family: x.Family, Kind: x.Kind, About: x.About,
		Versions: len(x.Versions), Defaults: map[string]string{}, Unresolved: x.Unresolved,
	}
	for _, k := range minors {
		if v, ok := c.Default(name, k); ok {
			r.Defaults[versions.Minor(k)] = v
		}
	}
	return r
}

func (a *app) printMatrix(rows []matrixRow, minors []string) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "COMPONENT\tVERSIONS")
	for _, k := range minors {
		fmt.Fprintf(w, "\tFOR %s", versions.Minor(k))
	}
	fmt.Fprintln(w, "\tABOUT")
	for _, r := range rows {
		count := strconv.Itoa(r.Versions)
		if r.Kind == versions.Package {
			count = "package"
		}
		fmt.Fprintf(w, "%s\t%s", r.Component, count)
		for _, k := range minors {
			fmt.Fprintf(w, "\t%s", dash(r.Defaults[versions.Minor(k)]))
		}
		about := r.About
		if r.Unresolved != "" {
			about = "unresolved: " + r.Unresolved
		}
		fmt.Fprintf(w, "\t%s\n", about)
	}
	return w.Flush()
}

// releaseRow is one version of a component.
type releaseRow struct {
	Component     string            `json:"component" yaml:"component"`
	Version       string            `json:"version" yaml:"version"`
	Kind          manifest.Kind     `json:"kind,omitempty" yaml:"kind,omitempty"`
	Kubernetes    string            `json:"kubernetes,omitempty" yaml:"kubernetes,omitempty"` // range it goes with
	Follows       string            `json:"follows,omitempty" yaml:"follows,omitempty"`       // component whose version it has
	Platforms     []string          `json:"platforms,omitempty" yaml:"platforms,omitempty,flow"`
	Digest        []manifest.Trust  `json:"digest,omitempty" yaml:"digest,omitempty,flow"`
	Address       string            `json:"address,omitempty" yaml:"address,omitempty"` // a template
	DigestAddress string            `json:"digestAddress,omitempty" yaml:"digestAddress,omitempty"`
	SHA256        map[string]string `json:"sha256,omitempty" yaml:"sha256,omitempty"`
	Images        []versions.Image  `json:"images,omitempty" yaml:"images,omitempty"`
	Packages      []string          `json:"packages,omitempty" yaml:"packages,omitempty,flow"`
	Asks          map[string]string `json:"asksFor,omitempty" yaml:"asksFor,omitempty"`
	Unresolved    string            `json:"unresolved,omitempty" yaml:"unresolved,omitempty"`
}

// newReleaseRow describes one version; without one, the component alone.
func newReleaseRow(c *versions.Catalog, name, version string) releaseRow {
	x, _ := c.Component(name)
	v, r, ok := c.Release(name, version)
	if !ok {
		return releaseRow{Component: name, Kind: x.Kind, Packages: x.Packages, Unresolved: x.Unresolved}
	}
	row := releaseRow{
		Component: name, Version: v, Kind: x.Kind, Kubernetes: r.Kubernetes, Follows: x.Follows, Digest: c.DigestSources(r, v),
		Address: r.Address, DigestAddress: r.DigestAddress, SHA256: r.SHA256, Images: r.Images, Packages: r.Packages,
		Asks: r.With, Unresolved: r.Unresolved,
	}
	for _, arch := range r.Architectures {
		row.Platforms = append(row.Platforms, manifest.Platform{OS: "linux", Arch: arch}.String())
	}
	return row
}

// printReleases writes rows as a table, with the component's name where they
// are of several.
func (a *app) printReleases(rows []releaseRow, named bool) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if named {
		fmt.Fprint(w, "COMPONENT\t")
	}
	fmt.Fprintln(w, "VERSION\tKUBERNETES\tPLATFORMS\tIMAGES\tDIGEST")
	for _, r := range rows {
		if named {
			fmt.Fprint(w, r.Component+"\t")
		}
		images := ""
		if n := len(r.Images); n > 0 {
			images = strconv.Itoa(n)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", dash(r.Version), dash(r.goesWith()), dash(strings.Join(r.Platforms, ", ")), dash(images), dash(r.vouched()))
	}
	return w.Flush()
}

// goesWith says which Kubernetes a version is for.
func (r releaseRow) goesWith() string {
	switch {
	case r.Kubernetes != "" || r.Version == "":
		return r.Kubernetes
	case r.Component == versions.Kubernetes:
		return ""
	case r.Follows != "":
		return "with " + r.Follows
	}
	return "any"
}

// vouched says who vouches for the bytes of a version, or why there are none.
func (r releaseRow) vouched() string {
	switch {
	case r.Kind == versions.Package:
		return "package " + strings.Join(r.Packages, ", ")
	case r.Unresolved != "":
		return "unresolved: " + r.Unresolved
	case len(r.Asks) > 0:
		return asks(r.Asks)
	}
	words := make([]string, len(r.Digest))
	for i, t := range r.Digest {
		words[i] = string(t)
	}
	return strings.Join(words, ", ")
}

// asks says what a Kubernetes release asks for.
func asks(with map[string]string) string {
	var parts []string
	for _, name := range sortedKeys(with) {
		parts = append(parts, name+" "+with[name])
	}
	return "asks for " + strings.Join(parts, ", ")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

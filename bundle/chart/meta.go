package chart

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"
)

// Meta is the metadata in a chart's Chart.yaml.
type Meta struct {
	APIVersion  string // "v1" or "v2"
	Name        string
	Version     string
	AppVersion  string
	KubeVersion string // range of supported Kubernetes versions, "" for any
	Type        string // "application", "library" or ""

	requires []Dependency
}

// Dependency is a chart that another chart needs in its folder charts.
type Dependency struct {
	Name       string `yaml:"name"`
	Version    string `yaml:"version"`    // exact if the chart's lock has it, else a range
	Repository string `yaml:"repository"` // https://…, oci://…, file://… or ""
}

// chartName is stricter than Helm, which accepts a chart with the name "..".
var chartName = regexp.MustCompile(`^[A-Za-z0-9](?:[-._A-Za-z0-9]{0,251}[A-Za-z0-9])?$`)

// readMeta reads Chart.yaml, and requirements.yaml of an apiVersion v1 chart.
func readMeta(c *Chart) (Meta, error) {
	text := c.file("Chart.yaml")
	if text == nil {
		return Meta{}, wrong("it has no Chart.yaml")
	}
	var raw struct {
		APIVersion   string       `yaml:"apiVersion"`
		Name         string       `yaml:"name"`
		Version      string       `yaml:"version"`
		AppVersion   yaml.Node    `yaml:"appVersion"`
		KubeVersion  string       `yaml:"kubeVersion"`
		Type         string       `yaml:"type"`
		Dependencies []Dependency `yaml:"dependencies"`
	}
	if err := yaml.Unmarshal(text, &raw); err != nil {
		return Meta{}, wrong("Chart.yaml: %v", err)
	}
	m := Meta{APIVersion: raw.APIVersion, Name: raw.Name, Version: raw.Version, AppVersion: raw.AppVersion.Value, KubeVersion: raw.KubeVersion, Type: raw.Type}
	if m.APIVersion == "" {
		m.APIVersion = "v1" // as in Helm
	}
	if !chartName.MatchString(m.Name) {
		return m, wrong("its name is %q", cut(m.Name))
	}
	if _, err := semver.NewVersion(m.Version); err != nil {
		return m, wrong("its version %q: %v", cut(m.Version), err)
	}
	m.requires = raw.Dependencies
	lock := c.file("Chart.lock")
	if old := c.file("requirements.yaml"); old != nil {
		var req struct {
			Dependencies []Dependency `yaml:"dependencies"`
		}
		if err := yaml.Unmarshal(old, &req); err != nil {
			return m, wrong("requirements.yaml: %v", err)
		}
		m.requires = append(m.requires, req.Dependencies...)
		if l := c.file("requirements.lock"); l != nil {
			lock = l
		}
	}
	return m, m.locked(lock)
}

// locked replaces version ranges by the exact versions of a lock.
func (m *Meta) locked(text []byte) error {
	var lock struct {
		Dependencies []Dependency `yaml:"dependencies"`
	}
	if err := yaml.Unmarshal(text, &lock); err != nil {
		return wrong("Chart.lock: %v", err)
	}
	for i, d := range m.requires {
		if !chartName.MatchString(d.Name) {
			return wrong("it depends on a chart with the name %q", cut(d.Name))
		}
		want, err := semver.NewConstraint(d.Version)
		if err != nil {
			return wrong("it depends on %s in version %q: %v", d.Name, cut(d.Version), err)
		}
		for _, l := range lock.Dependencies {
			v, err := semver.NewVersion(l.Version)
			if l.Name != d.Name || err != nil {
				continue
			}
			if !want.Check(v) {
				return fmt.Errorf("chart %s: its Chart.lock has %s %s, its Chart.yaml requires %s; run `helm dependency update`", m.Name, d.Name, l.Version, d.Version)
			}
			m.requires[i].Version = l.Version
		}
	}
	return nil
}

// Missing returns the charts that c depends on and does not contain.
func (c *Chart) Missing() []Dependency {
	held := map[string]bool{}
	for _, f := range c.Files {
		rest, ok := strings.CutPrefix(f.Name, "charts/")
		folder, in, deep := strings.Cut(rest, "/")
		switch {
		case !ok:
		case deep && in == "Chart.yaml":
			held[nameOf(f.Data)] = true
		case !deep && strings.HasSuffix(folder, ".tgz"):
			if inner, err := readInner(f.Data); err == nil {
				held[inner] = true
			}
		}
	}
	var out []Dependency
	seen := map[string]bool{}
	for _, d := range c.requires {
		if !held[d.Name] && !seen[d.Name+" "+d.Version] {
			seen[d.Name+" "+d.Version] = true
			out = append(out, d)
		}
	}
	return out
}

func nameOf(chartYAML []byte) string {
	var m struct {
		Name string `yaml:"name"`
	}
	if yaml.Unmarshal(chartYAML, &m) != nil {
		return ""
	}
	return m.Name
}

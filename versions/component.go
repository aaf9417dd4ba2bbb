package versions

import (
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Package is the kind of a component that is installed from an operating system package. The
// matrix contains it, but it has no files or images in a lock.
const Package manifest.Kind = "package"

// Component is one component of the version matrix, with its sources and known releases.
type Component struct {
	Kind manifest.Kind `yaml:"kind,omitempty" json:"kind"`
	// Family groups the components for readers: kubernetes, etcd, runtime, network, registry,
	// load-balancer, dns, addon, tool. An add-on of a config is a component of family addon, or
	// a component of an overlay without a family.
	Family string `yaml:"family,omitempty" json:"family,omitempty"`
	About  string `yaml:"about,omitempty" json:"about,omitempty"` // one line for a reader
	// Follows is the component whose version this one always has.
	Follows string `yaml:"follows,omitempty" json:"follows,omitempty"`
	// Always adds a component of an overlay to every bundle, independent of the config.
	Always   bool               `yaml:"always,omitempty" json:"always,omitempty"`
	Recipe   `yaml:",inline"`   // default for every release
	Versions map[string]Release `yaml:"versions,omitempty" json:"versions,omitempty"`
}

// Recipe describes how a release is downloaded. Addresses, member paths and image references
// are templates: {version} is the version without a leading v, {arch} is amd64 or arm64,
// {machine} is x86_64 or aarch64.
type Recipe struct {
	Address       string `yaml:"address,omitempty" json:"address,omitempty"`
	DigestAddress string `yaml:"digestAddress,omitempty" json:"digestAddress,omitempty"` // where upstream publishes the sha256
	Archive       string `yaml:"archive,omitempty" json:"archive,omitempty"`             // "tar.gz", or "" for a plain file
	// Chart is the address of the Helm chart. A component of kind chart is installed from it, and its
	// SHA256 is the chart's; for other kinds it is recorded only.
	Chart string `yaml:"chart,omitempty" json:"chart,omitempty"`
	// Architectures with a build, if SHA256 does not list them. If neither lists any, one file
	// is for all architectures.
	Architectures []string `yaml:"architectures,flow,omitempty" json:"architectures,omitempty"`
	Members       []Member `yaml:"members,omitempty" json:"members,omitempty"` // files of the archive that are added to a bundle
	Images        []Image  `yaml:"images,omitempty" json:"images,omitempty"`
	Packages      []string `yaml:"packages,flow,omitempty" json:"packages,omitempty"` // names in an operating system's repository
	// Unresolved is the reason why the release cannot be downloaded; "" means that it can.
	Unresolved string `yaml:"unresolved,omitempty" json:"unresolved,omitempty"`
}

// Release is one version of a component.
type Release struct {
	// Kubernetes is the range of compatible Kubernetes versions, ">=1.24, <1.33"; "" means any.
	Kubernetes string `yaml:"kubernetes,omitempty" json:"kubernetes,omitempty"`
	// SHA256 of the file by architecture, "any" for one file for all; lower-case hex.
	SHA256 map[string]string `yaml:"sha256,omitempty" json:"sha256,omitempty"`
	// With lists the versions of other components that a Kubernetes release requires. Only the
	// component kubernetes has it.
	With   map[string]string `yaml:"with,omitempty" json:"with,omitempty"`
	Recipe `yaml:",inline"`
}

// Member is one file of an archive that is added to a bundle: its path in the archive, and its
// name in a Need.
type Member struct {
	Path string `yaml:"path" json:"path"`
	Name string `yaml:"name" json:"name"`
}

// Image is one container image: its logical name in a Need, and its reference.
type Image struct {
	Name      string `yaml:"name" json:"name"`
	Reference string `yaml:"reference" json:"reference"`
}

// anyArch is the key of a digest for all architectures.
const anyArch = "any"

// machines are the kernel's names of the architectures.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// over returns r with unset fields taken from base.
func (r Recipe) over(base Recipe) Recipe {
	text := func(own *string, from string) {
		if *own == "" {
			*own = from
		}
	}
	if r.Address == "" { // a digest address belongs to the file at the address
		text(&r.DigestAddress, base.DigestAddress)
	}
	text(&r.Address, base.Address)
	text(&r.Archive, base.Archive)
	text(&r.Chart, base.Chart)
	text(&r.Unresolved, base.Unresolved)
	if r.Architectures == nil {
		r.Architectures = base.Architectures
	}
	if r.Members == nil {
		r.Members = base.Members
	}
	if r.Images == nil {
		r.Images = base.Images
	}
	if r.Packages == nil {
		r.Packages = base.Packages
	}
	return r
}

// release returns one version with its own fields, and unset fields taken from the component.
func (c *Component) release(version string) Release {
	r := c.Versions[version]
	own := r.Architectures
	r.Recipe = r.Recipe.over(c.Recipe)
	if own == nil && len(r.SHA256) > 0 {
		r.Architectures = nil
		for arch := range r.SHA256 {
			if arch != anyArch {
				r.Architectures = append(r.Architectures, arch)
			}
		}
	}
	slices.Sort(r.Architectures)
	return r
}

// ChartAddress returns the address of a version's chart from the template of a Recipe.
func ChartAddress(template, version string) string { return expand(template, version, "") }

// expand replaces the placeholders of a template.
func expand(template, version, arch string) string {
	return strings.NewReplacer(
		"{version}", strings.TrimPrefix(version, "v"),
		"{arch}", arch,
		"{machine}", machines[arch],
	).Replace(template)
}

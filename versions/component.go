package versions

import (
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Package is the kind of a component that is an operating system's own
// package. The matrix lists it; a lock of files and images does not hold it.
const Package manifest.Kind = "package"

// Component is one line of the matrix: what it is, where its releases live,
// and the releases that are known.
type Component struct {
	Kind manifest.Kind `yaml:"kind,omitempty" json:"kind"`
	// Family groups the matrix for readers: kubernetes, etcd, runtime, network,
	// registry, load-balancer, dns, addon, tool. An add-on of a config is one of
	// family addon, or an own component without a family.
	Family string `yaml:"family,omitempty" json:"family,omitempty"`
	About  string `yaml:"about,omitempty" json:"about,omitempty"` // one line for a reader
	// Follows names the component whose version this one always has.
	Follows string `yaml:"follows,omitempty" json:"follows,omitempty"`
	// Always puts an own component into every bundle, whatever the config asks for.
	Always   bool               `yaml:"always,omitempty" json:"always,omitempty"`
	Recipe   `yaml:",inline"`   // holds for every release that does not say otherwise
	Versions map[string]Release `yaml:"versions,omitempty" json:"versions,omitempty"`
}

// Recipe says how a release is fetched. Addresses, member paths and image
// references are templates: {version} is the version without a leading v,
// {arch} is amd64 or arm64, {machine} is x86_64 or aarch64.
type Recipe struct {
	Address       string `yaml:"address,omitempty" json:"address,omitempty"`
	DigestAddress string `yaml:"digestAddress,omitempty" json:"digestAddress,omitempty"` // where upstream publishes the sha256
	Archive       string `yaml:"archive,omitempty" json:"archive,omitempty"`             // "tar.gz", or "" for a plain file
	// Chart is the address of the Helm chart, recorded but not yet resolved.
	Chart string `yaml:"chart,omitempty" json:"chart,omitempty"`
	// Architectures with a build, where the digests do not tell. Neither means one file for all.
	Architectures []string `yaml:"architectures,flow,omitempty" json:"architectures,omitempty"`
	Members       []Member `yaml:"members,omitempty" json:"members,omitempty"` // wanted files of the archive
	Images        []Image  `yaml:"images,omitempty" json:"images,omitempty"`
	Packages      []string `yaml:"packages,flow,omitempty" json:"packages,omitempty"` // names in an operating system's repository
	// Unresolved is the reason why this cannot be fetched; "" means it can.
	Unresolved string `yaml:"unresolved,omitempty" json:"unresolved,omitempty"`
}

// Release is one version of a component.
type Release struct {
	// Kubernetes is the range of Kubernetes versions it goes with, ">=1.24, <1.33"; "" means any.
	Kubernetes string `yaml:"kubernetes,omitempty" json:"kubernetes,omitempty"`
	// SHA256 of the file by architecture, "any" where one file serves all; lower-case hex.
	SHA256 map[string]string `yaml:"sha256,omitempty" json:"sha256,omitempty"`
	// With holds, for kubernetes alone, the versions that this very release asks for.
	With   map[string]string `yaml:"with,omitempty" json:"with,omitempty"`
	Recipe `yaml:",inline"`
}

// Member is one wanted file of an archive: its path there, and its name in a Need.
type Member struct {
	Path string `yaml:"path" json:"path"`
	Name string `yaml:"name" json:"name"`
}

// Image is one container image: its logical name in a Need, and its reference.
type Image struct {
	Name      string `yaml:"name" json:"name"`
	Reference string `yaml:"reference" json:"reference"`
}

// anyArch is the key of a digest that holds for every architecture.
const anyArch = "any"

// machines names each architecture as the kernel does.
var machines = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// over gives r with the fields that base has and r leaves out.
func (r Recipe) over(base Recipe) Recipe {
	text := func(own *string, from string) {
		if *own == "" {
			*own = from
		}
	}
	if r.Address == "" { // the two go together: one file, and what upstream says of it
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

// release gives the whole of one version: its own fields over the component's.
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

// expand fills a template in.
func expand(template, version, arch string) string {
	return strings.NewReplacer(
		"{version}", strings.TrimPrefix(version, "v"),
		"{arch}", arch,
		"{machine}", machines[arch],
	).Replace(template)
}

package manifest

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// APIVersion is the version of every document this package reads and writes.
const APIVersion = "kubexm.mensylisir.io/v1alpha1"

// Kind is the kind of an artifact.
type Kind string

// The kinds of artifacts.
const (
	Binary Kind = "binary" // an executable for one platform, alone or in an archive
	File   Kind = "file"   // any other file: a manifest, a chart's values, a file of the user
	Image  Kind = "image"  // a container image
	Chart  Kind = "chart"  // a Helm chart

	// Packages is a repository of operating system packages for one distribution, release and
	// architecture.
	Packages Kind = "packages"
)

// Need refers to an artifact without its version, as a step requires it. The version is in the
// lock. Set selects one of several versions: there is one set per Kubernetes version in the
// lock. An empty Set means the first set of the lock.
//
// The name depends on the kind:
//   - binary: the component ("kubelet"); for an archive followed by the entry ("containerd/ctr")
//   - image: the logical name ("pause", "calico/node")
//   - packages: distribution and release ("debian-12"); for one file of the repository followed
//     by its path
type Need struct {
	Kind Kind
	Name string
	Set  string
}

// Lock pins the complete contents of a bundle. Bundles built from the same lock are identical,
// byte for byte.
type Lock struct {
	APIVersion string     `yaml:"apiVersion" json:"apiVersion"`
	Kind       string     `yaml:"kind" json:"kind"` // "Lock"
	Cluster    string     `yaml:"cluster" json:"cluster"`
	Created    time.Time  `yaml:"created" json:"created"` // UTC, whole seconds
	Serial     int64      `yaml:"serial" json:"serial"`   // increases with every change of the lock: the UTC time as yyyymmddhhmmss
	Config     string     `yaml:"config" json:"config"`   // "sha256:…" of the config without its secrets
	Platforms  []Platform `yaml:"platforms" json:"platforms"`
	Sets       []Set      `yaml:"sets" json:"sets"`
	Artifacts  []Artifact `yaml:"artifacts" json:"artifacts"`
	Images     []ImagePin `yaml:"images" json:"images"`
}

// Set is a combination of component versions, named after its Kubernetes version.
type Set struct {
	Name       string            `yaml:"name" json:"name"`             // "v1.32.2"
	Components map[string]string `yaml:"components" json:"components"` // component → version
}

// Trust is the source of an artifact's digest.
type Trust string

// The sources of a digest, the strongest first.
const (
	FromCatalog   Trust = "catalog"   // the embedded version matrix, or an overlay of it
	FromConfig    Trust = "config"    // the user's config
	FromPublished Trust = "published" // upstream's digest file, downloaded when the artifact was pinned
	FromContent   Trust = "content"   // no independent source: computed from the download when it was pinned
	FromUpstream  Trust = "upstream"  // of an image that a chart or manifest refers to and no list contains
)

// Artifact is one file to download. If Archive is set, the file is an archive, and only its
// Members are added to the bundle, each as a separate blob.
type Artifact struct {
	ID            string   `yaml:"id" json:"id"` // kind/name/version[/os/arch], unique in the lock
	Kind          Kind     `yaml:"kind" json:"kind"`
	Name          string   `yaml:"name" json:"name"`
	Version       string   `yaml:"version" json:"version"`
	Platform      Platform `yaml:"platform,omitempty" json:"platform,omitzero"`
	Sets          []string `yaml:"sets,flow" json:"sets"`
	Address       string   `yaml:"address,omitempty" json:"address,omitempty"`             // upstream's own, never a mirror's
	DigestAddress string   `yaml:"digestAddress,omitempty" json:"digestAddress,omitempty"` // where upstream publishes the digest
	Archive       string   `yaml:"archive,omitempty" json:"archive,omitempty"`             // "tar.gz" or "" for a plain file
	Size          int64    `yaml:"size,omitempty" json:"size,omitempty"`                   // bytes of the downloaded file
	SHA256        string   `yaml:"sha256,omitempty" json:"sha256,omitempty"`               // lower-case hex, of the downloaded file
	Trust         Trust    `yaml:"trust,omitempty" json:"trust,omitempty"`
	Members       []Member `yaml:"members,omitempty" json:"members,omitempty"`

	// Of a chart:
	Repository string      `yaml:"repository,omitempty" json:"repository,omitempty"` // whose index gave Address
	Chart      *ChartMeta  `yaml:"chart,omitempty" json:"chart,omitempty"`
	Parts      []ChartPart `yaml:"parts,omitempty" json:"parts,omitempty"` // charts that it is packed from, itself first; none if it is included as published

	// Of packages; their Members are the files of the repository, and they have neither
	// Address nor SHA256:
	Packages *PackageSet `yaml:"packages,omitempty" json:"packages,omitempty"`
}

// PackageSet describes the purpose and the sources of a repository of packages.
type PackageSet struct {
	// Format is deb or rpm.
	Format string `yaml:"format" json:"format"`
	// Want lists the packages to install. "|" separates alternatives of which one is
	// sufficient: "socat", "docker-ce | docker.io". The repository contains their
	// dependencies as well.
	Want []string `yaml:"want" json:"want"`
	// Sources and Keys are copied from the config: where packages come from, and key files.
	// Without Sources the repositories of the machine that builds the bundle are used.
	Sources []string `yaml:"sources,omitempty" json:"sources,omitempty"`
	Keys    []string `yaml:"keys,omitempty" json:"keys,omitempty"`
	// Repositories lists the repositories that packages were resolved from, for people.
	Repositories []string `yaml:"repositories,omitempty" json:"repositories,omitempty"`
	// Date is the date in the generated metadata: UTC, whole seconds.
	Date time.Time `yaml:"date,omitempty" json:"date,omitzero"`
	// Base lists dependencies that the repository leaves out because every installation of
	// the distribution has them: "libc6 2.36-9+deb12u9 (amd64)".
	Base []string `yaml:"base,omitempty" json:"base,omitempty"`
}

// The formats of packages.
const (
	Deb = "deb"
	RPM = "rpm"
)

// ChartMeta is the metadata in a chart's Chart.yaml.
type ChartMeta struct {
	APIVersion string `yaml:"apiVersion" json:"apiVersion"`
	Name       string `yaml:"name" json:"name"`
	Version    string `yaml:"version" json:"version"`
	AppVersion string `yaml:"appVersion,omitempty" json:"appVersion,omitempty"`
	Type       string `yaml:"type,omitempty" json:"type,omitempty"`
}

// ChartPart is one of the charts that a chart is packed from, if its archive did not contain
// all its dependencies.
type ChartPart struct {
	Name    string `yaml:"name" json:"name"`
	Version string `yaml:"version" json:"version"`
	Address string `yaml:"address" json:"address"`
	Size    int64  `yaml:"size" json:"size"`     // bytes of its archive
	SHA256  string `yaml:"sha256" json:"sha256"` // lower-case hex, of its archive
}

// Local reports whether the artifact is a file or folder on the machine that builds the
// bundle. Its Address is then a path relative to the config's folder.
func (a Artifact) Local() bool { return a.Address != "" && !strings.Contains(a.Address, "://") }

// Member is one file of an archive that is added to the bundle, or one file of a repository of
// packages.
type Member struct {
	Path   string `yaml:"path" json:"path"`                     // in the archive: "bin/containerd"; in the repository: "pool/socat_1.7.4.4-2_amd64.deb"
	Name   string `yaml:"name" json:"name"`                     // in a Need: "containerd"; in a repository it is the path
	Size   int64  `yaml:"size,omitempty" json:"size,omitempty"` // bytes, unpacked
	SHA256 string `yaml:"sha256,omitempty" json:"sha256,omitempty"`

	// Of a package. The repository's metadata files have none of these; they are generated
	// from all Records:
	Package string `yaml:"package,omitempty" json:"package,omitempty"` // "socat 1.7.4.4-2 (amd64)"
	Address string `yaml:"address,omitempty" json:"address,omitempty"` // upstream's own, never a mirror's
	Record  string `yaml:"record,omitempty" json:"record,omitempty"`   // its entry in upstream's metadata
}

// ImagePin is one image, pinned to the digest of its tag at the time of resolution.
type ImagePin struct {
	ID        string          `yaml:"id" json:"id"`               // "image/" + Reference
	Names     []string        `yaml:"names,flow" json:"names"`    // logical names, as Needs use them
	Reference string          `yaml:"reference" json:"reference"` // upstream's own, with registry and tag
	Sets      []string        `yaml:"sets,flow" json:"sets"`
	MediaType string          `yaml:"mediaType,omitempty" json:"mediaType,omitempty"`
	Digest    string          `yaml:"digest,omitempty" json:"digest,omitempty"` // "sha256:…" of the index, or of the manifest if there is no index
	Size      int64           `yaml:"size,omitempty" json:"size,omitempty"`     // bytes of that document
	Trust     Trust           `yaml:"trust,omitempty" json:"trust,omitempty"`
	Platforms []PlatformImage `yaml:"platforms,omitempty" json:"platforms,omitempty"`
}

// PlatformImage is the manifest of an image for one platform of the bundle.
type PlatformImage struct {
	Platform  Platform `yaml:"platform" json:"platform"`
	MediaType string   `yaml:"mediaType" json:"mediaType"`
	Digest    string   `yaml:"digest" json:"digest"`   // "sha256:…" of the manifest
	Size      int64    `yaml:"size" json:"size"`       // bytes of the manifest
	Content   int64    `yaml:"content" json:"content"` // bytes of its config and layers
}

// Clone returns a copy of l. Sort of the copy does not change l.
func (l *Lock) Clone() *Lock {
	c := *l
	c.Platforms = slices.Clone(l.Platforms)
	c.Artifacts = slices.Clone(l.Artifacts)
	for i, a := range c.Artifacts {
		c.Artifacts[i].Sets, c.Artifacts[i].Members = slices.Clone(a.Sets), slices.Clone(a.Members)
		c.Artifacts[i].Parts = slices.Clone(a.Parts)
	}
	c.Images = slices.Clone(l.Images)
	for i, im := range c.Images {
		c.Images[i].Names, c.Images[i].Sets, c.Images[i].Platforms = slices.Clone(im.Names), slices.Clone(im.Sets), slices.Clone(im.Platforms)
	}
	return &c
}

// Sort sorts l into the canonical order of an encoded lock.
func (l *Lock) Sort() {
	for i := range l.Artifacts {
		slices.Sort(l.Artifacts[i].Sets)
		slices.SortFunc(l.Artifacts[i].Members, func(a, b Member) int { return cmp.Compare(a.Path, b.Path) })
	}
	for i := range l.Images {
		slices.Sort(l.Images[i].Names)
		slices.Sort(l.Images[i].Sets)
		slices.SortFunc(l.Images[i].Platforms, func(a, b PlatformImage) int {
			return cmp.Compare(a.Platform.String(), b.Platform.String())
		})
	}
	slices.SortFunc(l.Platforms, func(a, b Platform) int { return cmp.Compare(a.String(), b.String()) })
	slices.SortFunc(l.Artifacts, func(a, b Artifact) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(l.Images, func(a, b ImagePin) int { return cmp.Compare(a.ID, b.ID) })
}

// Components returns the versions of a set's components, by component; nil if the lock does
// not contain the set.
func (l *Lock) Components(set string) map[string]string {
	for _, s := range l.Sets {
		if s.Name == set {
			return maps.Clone(s.Components)
		}
	}
	return nil
}

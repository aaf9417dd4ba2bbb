package bundle

import (
	"cmp"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// TypeProvenance is the predicate type of a SLSA provenance statement:
// https://slsa.dev/spec/v1.0/provenance
const TypeProvenance = "https://slsa.dev/provenance/v1"

// buildType identifies how kubexm builds: from a config and its lock only.
const buildType = "https://kubexm.mensylisir.io/bundle-build/v1"

// Provenance lists what a bundle was built from, and by which program.
type Provenance struct {
	BuildDefinition BuildDefinition `json:"buildDefinition"`
	RunDetails      RunDetails      `json:"runDetails"`
}

// BuildDefinition lists the inputs of a build.
type BuildDefinition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	ResolvedDependencies []Dependency      `json:"resolvedDependencies"`
}

// Dependency is one input: an entry of the lock, with the digest of what was fetched.
type Dependency struct {
	Name   string            `json:"name"` // the lock's id
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// RunDetails identifies the builder.
type RunDetails struct {
	Builder struct {
		ID      string            `json:"id"`
		Version map[string]string `json:"version"`
	} `json:"builder"`
}

// ProvenanceOf returns the provenance of the bundle of l. kubexm is the version of the
// program. For files that the build generates (a repository's metadata, a chart packed from
// a folder), it lists the fetched files that they were generated from.
func ProvenanceOf(l *manifest.Lock, kubexm string) Provenance {
	var p Provenance
	p.BuildDefinition.BuildType = buildType
	p.BuildDefinition.ExternalParameters = map[string]string{"cluster": l.Cluster, "config": l.Config}
	p.BuildDefinition.ResolvedDependencies = []Dependency{}
	p.RunDetails.Builder.ID = "https://github.com/mensylisir/kubexm"
	p.RunDetails.Builder.Version = map[string]string{"kubexm": kubexm}
	add := func(name, uri, sha256 string) {
		if sha256 != "" {
			p.BuildDefinition.ResolvedDependencies = append(p.BuildDefinition.ResolvedDependencies,
				Dependency{Name: name, URI: uri, Digest: map[string]string{"sha256": sha256}})
		}
	}
	for _, a := range l.Artifacts {
		add(a.ID, a.Address, a.SHA256)
		for _, part := range a.Parts {
			add(a.ID+"/"+part.Name, part.Address, part.SHA256)
		}
		if a.Kind != manifest.Packages {
			continue
		}
		for _, m := range a.Members {
			if m.Package != "" {
				add(a.ID+"/"+cmp.Or(m.Name, m.Path), m.Address, m.SHA256)
			}
		}
	}
	for _, im := range l.Images {
		add(im.ID, im.Reference, strings.TrimPrefix(im.Digest, "sha256:"))
	}
	return p
}

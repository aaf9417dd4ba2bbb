package bundle

import (
	"cmp"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// TypeProvenance is the predicate type of a statement of how something was made:
// https://slsa.dev/spec/v1.0/provenance
const TypeProvenance = "https://slsa.dev/provenance/v1"

// buildType says how kubexm builds: from a config and its lock alone.
const buildType = "https://kubexm.mensylisir.io/bundle-build/v1"

// Provenance says what a bundle was made from, and by which program.
type Provenance struct {
	BuildDefinition BuildDefinition `json:"buildDefinition"`
	RunDetails      RunDetails      `json:"runDetails"`
}

// BuildDefinition is what went in.
type BuildDefinition struct {
	BuildType            string            `json:"buildType"`
	ExternalParameters   map[string]string `json:"externalParameters"`
	ResolvedDependencies []Dependency      `json:"resolvedDependencies"`
}

// Dependency is one input: what the lock pins, with the digest of what was fetched.
type Dependency struct {
	Name   string            `json:"name"` // the lock's id
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// RunDetails says who built.
type RunDetails struct {
	Builder struct {
		ID      string            `json:"id"`
		Version map[string]string `json:"version"`
	} `json:"builder"`
}

// ProvenanceOf says of the bundle that l makes what it is made from. kubexm is the
// version of the program. Of what is made while building (a repository's metadata,
// a chart packed from a folder) the files that went in stand there, as far as they
// were fetched.
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

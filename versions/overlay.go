package versions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// overlay merges doc over c.
func (c *Catalog) overlay(doc *Document) manifest.Problems {
	var ps manifest.Problems
	for _, name := range slices.Sorted(maps.Keys(doc.Components)) {
		over := doc.Components[name]
		base, known := c.components[name]
		if !known {
			if over.Kind == "" {
				ps = append(ps, manifest.Problem{
					Path: "components." + name, Message: "is not a component of the version matrix, and has no kind",
					Advice: nearest(name, c.Names()) + ", or set a kind to add your own component",
				})
				continue
			}
			base = &Component{Kind: over.Kind, Versions: map[string]Release{}}
			c.own[name] = true
		}
		merged := base.merge(over)
		ps = append(ps, merged.problems("components."+name, slices.Sorted(maps.Keys(over.Versions)))...)
		c.components[name] = merged
	}
	maps.Copy(c.images, doc.Images)
	return ps
}

// merge returns c merged with over. It changes neither of them.
func (c *Component) merge(over *Component) *Component {
	m := *c
	m.Recipe = over.Recipe.over(c.Recipe)
	m.Always = c.Always || over.Always
	if over.Kind != "" {
		m.Kind = over.Kind
	}
	for into, from := range map[*string]string{&m.About: over.About, &m.Family: over.Family, &m.Follows: over.Follows} {
		if from != "" {
			*into = from
		}
	}
	m.Versions = maps.Clone(c.Versions)
	for version, rel := range over.Versions {
		spelled, known := c.spelling(version)
		if !known {
			m.Versions[version] = rel
			continue
		}
		m.Versions[spelled] = c.mergeRelease(spelled, rel)
	}
	return &m
}

// mergeRelease merges rel over a known version. The architectures in the matrix stay, even if
// the overlay has the digest of only one of them.
func (c *Component) mergeRelease(version string, rel Release) Release {
	old, complete := c.Versions[version], c.release(version)
	merged := rel
	merged.Recipe = rel.Recipe.over(old.Recipe)
	moved := rel.Address != "" && rel.Address != complete.Address
	if !moved { // the old digests do not apply to a file at another address
		merged.SHA256 = maps.Clone(old.SHA256)
	}
	if merged.SHA256 == nil {
		merged.SHA256 = map[string]string{}
	}
	maps.Copy(merged.SHA256, rel.SHA256)
	if merged.Kubernetes == "" {
		merged.Kubernetes = old.Kubernetes
	}
	if merged.With == nil {
		merged.With = old.With
	}
	if rel.Architectures == nil && !moved && len(complete.Architectures) > 0 {
		archs := slices.Clone(complete.Architectures)
		for arch := range rel.SHA256 {
			if arch != anyArch && !slices.Contains(archs, arch) {
				archs = append(archs, arch)
			}
		}
		slices.Sort(archs)
		merged.Architectures = archs
	}
	if rel.Unresolved == "" && (len(rel.SHA256) > 0 || rel.Address != "") {
		merged.Unresolved = ""
	}
	return merged
}

// problems returns the reasons why some versions of c cannot be downloaded.
func (c *Component) problems(path string, among []string) manifest.Problems {
	var ps manifest.Problems
	for _, v := range among {
		spelled, ok := c.spelling(v)
		if !ok {
			continue
		}
		if why := c.release(spelled).incomplete(c.Kind); why != "" {
			ps = append(ps, manifest.Problem{Path: path + ".versions." + v, Message: why, Advice: "add it to this version or to the component"})
		}
	}
	return ps
}

// incomplete returns what a release of a kind requires and does not have; "" if it is complete.
func (r Release) incomplete(kind manifest.Kind) string {
	hasFile := r.Address != ""
	switch {
	case r.Unresolved != "" || kind == Package:
		return ""
	case (kind == manifest.Binary || kind == manifest.File) && !hasFile:
		return "has no address"
	case kind == manifest.Image && len(r.Images) == 0:
		return "has no images"
	case kind == manifest.Chart && len(r.Images) == 0 && r.Chart == "":
		return "has neither images nor a chart"
	case hasFile && len(r.SHA256) == 0 && r.DigestAddress == "":
		return "has an address, but neither sha256 nor digestAddress"
	case (r.Archive == "") != (len(r.Members) == 0):
		return "must have members if it is an archive, and none otherwise"
	case kind == manifest.Binary && len(r.Architectures) == 0:
		return "is a binary without an architecture"
	}
	if r.DigestAddress == "" && hasFile {
		for _, arch := range r.Architectures {
			if r.SHA256[arch] == "" {
				return fmt.Sprintf("has no digest for %s", arch)
			}
		}
	}
	if len(r.Architectures) == 0 && hasFile && r.SHA256[anyArch] == "" && r.DigestAddress == "" {
		return "is one file for every architecture: write its digest under any"
	}
	if len(r.Architectures) > 1 && hasFile && !strings.Contains(r.Address, "{arch}") && !strings.Contains(r.Address, "{machine}") {
		return "has one address for several architectures; write {arch} or {machine} into it"
	}
	return ""
}

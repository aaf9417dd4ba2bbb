package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/versions"
)

// generate joins sources, facts, tags and indexes of charts into one document per component.
func generate(sources map[string]*source, f *facts, tagged map[string]map[string]tagged, charted map[string]map[string]charted) (map[string]*versions.Document, error) {
	out := map[string]*versions.Document{}
	for name, s := range sources {
		g := &generator{name: name, source: s, facts: f, tagged: tagged[name], charted: charted[name], doc: &versions.Document{
			APIVersion: manifest.APIVersion, Kind: versions.DocumentKind,
			Components: map[string]*versions.Component{name: &s.Component},
		}}
		if err := g.run(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = g.doc
	}
	return out, nil
}

// generator generates one component's document.
type generator struct {
	name    string
	source  *source
	facts   *facts
	tagged  map[string]tagged
	charted map[string]charted
	doc     *versions.Document
}

func (g *generator) run() error {
	g.source.Versions = map[string]versions.Release{}
	if g.name == versions.Kubernetes {
		g.kubernetes()
		return nil
	}
	for _, v := range g.versions() {
		ok, err := inRange(v, g.source.Take)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		r, err := g.release(v)
		if err != nil {
			return err
		}
		g.source.Versions[g.spell(v)] = r
	}
	return nil
}

// spell formats a version like upstream's tag.
func (g *generator) spell(v string) string {
	if g.source.Follows == versions.Kubernetes {
		return "v" + v
	}
	return g.source.Prefix + strings.TrimPrefix(v, g.source.Prefix)
}

// versions returns the versions of all tables, sorted and without duplicates.
func (g *generator) versions() []string {
	s := g.source
	all := map[string]bool{}
	add := func(vs ...string) {
		for _, v := range vs {
			all[v] = true
		}
	}
	switch {
	case s.Follows == versions.Kubernetes:
		add(g.facts.kubernetes()...)
	case s.Kubeadm != "":
		for _, asked := range g.facts.kubeadm {
			add(asked[s.Kubeadm])
		}
	case s.Table != "":
		add(slices.Collect(maps.Keys(g.facts.checksums[s.Table]))...)
	case s.Addon != "":
		add(slices.Collect(maps.Keys(g.facts.addons[s.Addon]))...)
	}
	add(slices.Collect(maps.Keys(g.tagged))...)
	add(slices.Collect(maps.Keys(g.charted))...)
	add(s.Known...)
	add(s.Published...)
	return slices.Sorted(maps.Keys(all))
}

// release joins the entries of one version in the tables.
func (g *generator) release(v string) (versions.Release, error) {
	var r versions.Release
	for _, rule := range g.source.Rules {
		ok, err := inRange(v, rule.In)
		if err != nil {
			return r, err
		}
		if ok {
			r = rule.Release
			break
		}
	}
	if g.source.Minor {
		x, err := semver.NewVersion(v)
		if err != nil {
			return r, err
		}
		r.Kubernetes = fmt.Sprintf(">=%d.%d, <%d.%d", x.Major(), x.Minor(), x.Major(), x.Minor()+1)
	}
	if r.Kubernetes == "" {
		r.Kubernetes = g.charted[v].Kubernetes
	}
	g.digests(v, &r)
	if g.source.Addon != "" {
		r.Images = g.images(slices.Clone(g.facts.addons[g.source.Addon][v]))
	}
	if t := g.tagged[v]; len(t.Images) > 0 {
		r.Images = g.images(slices.Sorted(maps.Keys(t.Images)))
		for ref, digest := range t.Images {
			if digest != "" {
				if g.doc.Images == nil {
					g.doc.Images = map[string]string{}
				}
				g.doc.Images[ref] = digest
			}
		}
	}
	return r, nil
}

// digests sets the sha256 of one version.
func (g *generator) digests(v string, r *versions.Release) {
	if t := g.tagged[v]; t.SHA256 != "" {
		r.SHA256 = map[string]string{"any": t.SHA256}
	}
	if c := g.charted[v]; c.SHA256 != "" {
		r.SHA256 = map[string]string{"any": c.SHA256}
	}
	row := g.facts.checksums[g.source.Table][v]
	for arch, sum := range row {
		if g.source.Only != nil && !slices.Contains(g.source.Only, arch) {
			continue
		}
		if r.SHA256 == nil {
			r.SHA256 = map[string]string{}
		}
		r.SHA256[arch] = sum
	}
}

// images names the images of a release: by the component if it has one image, else by
// component and the last segment of the repository.
func (g *generator) images(refs []string) []versions.Image {
	slices.Sort(refs)
	refs = slices.Compact(refs)
	var out []versions.Image
	for _, ref := range refs {
		name := g.name
		if len(refs) > 1 {
			repository, _, _ := strings.Cut(path.Base(ref), ":")
			name += "/" + repository
		}
		out = append(out, versions.Image{Name: name, Reference: ref})
	}
	return out
}

// kubernetes adds the releases with the component versions that their kubeadm uses.
func (g *generator) kubernetes() {
	for _, v := range g.facts.kubernetes() {
		asked := g.facts.kubeadm[v]
		etcd, _, _ := strings.Cut(asked["etcd"], "-")
		g.source.Versions["v"+v] = versions.Release{With: map[string]string{
			"coredns": asked["coredns"], "pause": asked["pause"], "etcd-image": asked["etcd"], "etcd": "v" + etcd,
		}}
	}
}

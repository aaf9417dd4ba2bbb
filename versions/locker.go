package versions

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// locker builds one lock and collects all problems.
type locker struct {
	catalog   *Catalog
	cluster   *manifest.Cluster
	lock      *manifest.Lock
	current   *manifest.Set // the set that components are added to
	artifacts map[string]*manifest.Artifact
	images    map[string]*manifest.ImagePin
	named     []string // operating system packages of required components
	problems  manifest.Problems
	reported  map[string]bool
}

// sets returns the names of all sets of the lock.
func (l *locker) sets() []string {
	var sets []string
	for _, s := range l.lock.Sets {
		sets = append(sets, s.Name)
	}
	return sets
}

// report adds a problem, once.
func (l *locker) report(p manifest.Problem) {
	if key := p.String(); !l.reported[key] {
		l.reported[key] = true
		l.problems = append(l.problems, p)
	}
}

// want adds the required parts of one component to the current set.
func (l *locker) want(w want) {
	component, ok := l.catalog.components[w.component]
	if !ok || (w.addon && !l.catalog.isAddon(w.component)) {
		known := l.catalog.Names()
		if w.addon {
			known = slices.DeleteFunc(known, func(name string) bool { return !l.catalog.isAddon(name) })
		}
		l.report(manifest.Problem{Path: w.path, Message: w.component + " is not in the version matrix", Advice: nearest(w.component, known)})
		return
	}
	if component.Kind == Package {
		l.asPackage(component, w)
		return
	}
	version, ok := l.version(component, w)
	if !ok {
		return
	}
	if w.unfit != nil {
		if p := w.unfit(version); p != nil {
			l.report(*p)
			return
		}
	}
	release := component.release(version)
	if release.Unresolved != "" {
		l.report(manifest.Problem{
			Path: w.path, Message: fmt.Sprintf("%s %s cannot be downloaded: %s", w.component, version, release.Unresolved),
			Advice: "choose another version, or add its address and sha256 to a file for --versions",
		})
		return
	}
	l.current.Components[w.component] = version
	switch {
	case w.parts&files == 0:
	case component.Kind == manifest.Chart && release.Chart != "":
		l.artifact(matrixChart(w.component, version, release))
	case release.Address != "":
		l.files(w, component.Kind, version, release)
	}
	if w.parts&images != 0 {
		for _, image := range release.Images {
			ref := expand(image.Reference, version, "")
			l.image(image.Name, ref, l.catalog.images[ref], manifest.FromCatalog, []string{l.current.Name})
		}
	}
}

// version returns the version of a component: the config's, else that of the component that it
// follows, else the default.
func (l *locker) version(component *Component, w want) (string, bool) {
	if w.version == "" {
		followed, ok := l.current.Components[component.Follows]
		if !ok {
			return l.byDefault(component, w)
		}
		w.version = followed
	}
	v, ok := component.spelling(w.version)
	if !ok && w.component == "etcd-image" {
		v, ok = component.newestBuild(w.version)
	}
	if !ok {
		l.unknown(w.component, w.version, w.path)
		return "", false
	}
	if r := component.release(v); !r.CompatibleWith(l.current.Name) {
		advice := "leave the version out to use a compatible one"
		if d, ok := l.catalog.Default(w.component, l.current.Name); ok {
			advice = "use " + d + ", or leave the version out"
		}
		l.report(manifest.Problem{
			Severity: manifest.Warning, Path: w.path, Advice: advice,
			Message: fmt.Sprintf("%s %s is compatible with Kubernetes %s, not with %s", w.component, v, r.Kubernetes, l.current.Name),
		})
	}
	return v, true
}

func (l *locker) byDefault(component *Component, w want) (string, bool) {
	v, ok := l.catalog.Default(w.component, l.current.Name)
	switch {
	case ok:
	case component.Unresolved != "":
		l.report(manifest.Problem{
			Path: w.path, Message: w.component + " cannot be downloaded: " + component.Unresolved,
			Advice: "add a version with its address and sha256 to a file for --versions",
		})
	default:
		l.report(manifest.Problem{
			Path: w.path, Message: fmt.Sprintf("no version of %s is compatible with Kubernetes %s", w.component, l.current.Name),
			Advice: "specify a version; `kubexm versions " + w.component + "` lists them",
		})
	}
	return v, ok
}

// unknown reports that a version is not in the matrix, with the closest versions.
func (l *locker) unknown(name, version, path string) {
	l.report(manifest.Problem{
		Path: path, Message: fmt.Sprintf("%s %s is not in the version matrix", name, version),
		Advice: "use one of " + strings.Join(closest(version, l.catalog.Versions(name)), ", ") +
			" (`kubexm versions " + name + "` lists all), or add yours with --versions",
	})
}

// files adds the files of one release, one artifact per required platform.
func (l *locker) files(w want, kind manifest.Kind, version string, r Release) {
	if len(r.Architectures) == 0 {
		l.artifact(newArtifact(kind, w.component, version, manifest.Platform{}, r))
		return
	}
	platforms := l.lock.Platforms
	if w.on != nil {
		platforms = w.on
	}
	for _, p := range platforms {
		if p.OS != "linux" || !slices.Contains(r.Architectures, p.Arch) {
			l.report(manifest.Problem{
				Path: w.path, Message: fmt.Sprintf("%s %s has no build for %s", w.component, version, p),
				Advice: "there are builds for " + strings.Join(r.Architectures, ", ") + "; choose another version, or leave the platform out of spec.bundle.platforms",
			})
			continue
		}
		l.artifact(newArtifact(kind, w.component, version, manifest.Platform{OS: p.OS, Arch: p.Arch}, r))
	}
}

// matrixChart returns the chart of a release.
func matrixChart(name, version string, r Release) manifest.Artifact {
	a := manifest.Artifact{
		ID: artifactID(manifest.Chart, name, version, manifest.Platform{}), Kind: manifest.Chart, Name: name, Version: version,
		Address: ChartAddress(r.Chart, version), SHA256: r.SHA256[anyArch],
	}
	if a.SHA256 != "" {
		a.Trust = manifest.FromCatalog
	}
	return a
}

// newArtifact expands the templates of a release for one platform.
func newArtifact(kind manifest.Kind, name, version string, p manifest.Platform, r Release) manifest.Artifact {
	if kind != manifest.Binary {
		kind = manifest.File // a manifest, in addition to images or a chart
	}
	arch := p.Arch
	sum := r.SHA256[arch]
	if arch == "" {
		sum = r.SHA256[anyArch]
	}
	a := manifest.Artifact{
		ID: artifactID(kind, name, version, p), Kind: kind, Name: name, Version: version, Platform: p,
		Address: expand(r.Address, version, arch), DigestAddress: expand(r.DigestAddress, version, arch),
		Archive: r.Archive, SHA256: sum,
	}
	if sum != "" {
		a.Trust = manifest.FromCatalog
	}
	for _, m := range r.Members {
		a.Members = append(a.Members, manifest.Member{Path: expand(m.Path, version, arch), Name: m.Name})
	}
	return a
}

func artifactID(kind manifest.Kind, name, version string, p manifest.Platform) string {
	id := string(kind) + "/" + name + "/" + version
	if !p.IsZero() {
		id += "/" + p.String()
	}
	return id
}

// artifact adds a to the current set. An artifact of another set is shared.
func (l *locker) artifact(a manifest.Artifact) {
	known, ok := l.artifacts[a.ID]
	if !ok {
		known = &a
		l.artifacts[a.ID] = known
	}
	known.Sets = append(known.Sets, l.current.Name)
}

// image adds one image under a logical name.
func (l *locker) image(name, ref, digest string, trust manifest.Trust, sets []string) {
	pin, ok := l.images[ref]
	if !ok {
		pin = &manifest.ImagePin{ID: string(manifest.Image) + "/" + ref, Reference: ref}
		l.images[ref] = pin
	}
	if digest != "" && pin.Digest == "" {
		pin.Digest, pin.Trust = digest, trust
	}
	pin.Names = append(pin.Names, name)
	pin.Sets = append(pin.Sets, sets...)
}

// finish adds all artifacts and images to the lock, sorted and without duplicates.
func (l *locker) finish() {
	for _, id := range slices.Sorted(maps.Keys(l.artifacts)) {
		a := l.artifacts[id]
		slices.Sort(a.Sets)
		a.Sets = slices.Compact(a.Sets)
		l.lock.Artifacts = append(l.lock.Artifacts, *a)
	}
	for _, ref := range slices.Sorted(maps.Keys(l.images)) {
		pin := l.images[ref]
		slices.Sort(pin.Names)
		slices.Sort(pin.Sets)
		pin.Names, pin.Sets = slices.Compact(pin.Names), slices.Compact(pin.Sets)
		l.lock.Images = append(l.lock.Images, *pin)
	}
	l.lock.Sort()
}

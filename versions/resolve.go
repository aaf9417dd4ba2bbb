package versions

import (
	"fmt"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
)

// Resolve returns a lock with everything that a cluster config requires: versions, addresses
// and known digests. It uses neither network nor clock. Pinning adds sizes and the other
// digests; the caller sets Created, Serial and Config. All problems are in one report. The lock
// is nil if one of them is an error.
func (c *Catalog) Resolve(cluster *manifest.Cluster) (*manifest.Lock, manifest.Problems) {
	l := &locker{catalog: c, cluster: cluster, artifacts: map[string]*manifest.Artifact{}, images: map[string]*manifest.ImagePin{}, reported: map[string]bool{}}
	l.lock = &manifest.Lock{
		APIVersion: manifest.APIVersion, Kind: manifest.LockKind,
		Cluster: cluster.Metadata.Name, Platforms: cluster.BundlePlatforms(),
	}
	for i, version := range setVersions(cluster) {
		path := "spec.kubernetes.version"
		if i > 0 {
			path = fmt.Sprintf("spec.bundle.kubernetesVersions[%d]", i-1)
		}
		l.set(version, path)
	}
	l.extras()
	l.packages()
	l.finish()
	if l.problems.Err() != nil {
		return nil, l.problems
	}
	return l.lock, l.problems
}

// setVersions returns the Kubernetes versions of the bundle; spec.kubernetes.version is first.
func setVersions(cluster *manifest.Cluster) []string {
	return append([]string{cluster.Spec.Kubernetes.Version}, cluster.Spec.Bundle.KubernetesVersions...)
}

// set adds one set: everything that the config requires for one Kubernetes version.
func (l *locker) set(version, path string) {
	kubernetes, _, ok := l.catalog.Release(Kubernetes, version)
	if !ok {
		l.unknown(Kubernetes, version, path)
		return
	}
	if slices.ContainsFunc(l.lock.Sets, func(s manifest.Set) bool { return s.Name == kubernetes }) {
		return
	}
	l.lock.Sets = append(l.lock.Sets, manifest.Set{Name: kubernetes, Components: map[string]string{Kubernetes: kubernetes}})
	l.current = &l.lock.Sets[len(l.lock.Sets)-1]
	for _, family := range families {
		for _, w := range family(l.cluster) {
			l.want(w)
		}
	}
	for _, name := range l.catalog.always() {
		l.want(want{component: name, path: "components." + name, parts: files | images})
	}
}

// isAddon reports whether a component can be an add-on of a config.
func (c *Catalog) isAddon(name string) bool {
	family := c.components[name].Family
	return family == "addon" || (c.own[name] && family == "")
}

// always returns the components of every bundle, sorted.
func (c *Catalog) always() []string {
	return slices.DeleteFunc(c.Names(), func(name string) bool { return !c.components[name].Always })
}

package versions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// packages adds a repository of packages for each operating system that the
// config names, its releases and the bundle's architectures. Which packages the
// names lead to, only the distribution's own repositories know.
func (l *locker) packages() {
	carried := map[string]bool{}
	for i, system := range l.cluster.Spec.Bundle.OperatingSystems {
		at := fmt.Sprintf("spec.bundle.operatingSystems[%d]", i)
		format := l.catalog.systems.format(system)
		if format == "" {
			l.say(manifest.Problem{
				Path: at + ".name", Message: fmt.Sprintf("it is not known what format the packages of %s have", system.Name),
				Advice: nearest(system.Name, l.catalog.systems.known()) + ", or write format: deb or format: rpm beside it",
			})
			continue
		}
		carried[format] = true
		for _, release := range system.Releases {
			for _, p := range l.lock.Platforms {
				p.Distribution, p.Release = system.Name, release
				l.repository(at, p, &manifest.PackageSet{Format: format, Want: l.packagesOf(format), Sources: system.Repositories, Keys: system.Keys})
			}
		}
	}
	for _, own := range []struct {
		path, format string
		names        []string
	}{{"spec.system.debs", manifest.Deb, l.cluster.Spec.System.Debs}, {"spec.system.rpms", manifest.RPM, l.cluster.Spec.System.RPMs}} {
		if len(own.names) > 0 && !carried[own.format] {
			l.say(manifest.Problem{
				Severity: manifest.Warning, Path: own.path, Message: "names packages that the bundle does not hold: no operating system has that format",
				Advice: "name the hosts' operating systems under spec.bundle.operatingSystems",
			})
		}
	}
}

// repository adds one repository.
func (l *locker) repository(at string, p manifest.Platform, set *manifest.PackageSet) {
	a := &manifest.Artifact{Kind: manifest.Packages, Name: p.System(), Version: p.Release, Platform: p, Sets: l.sets(), Packages: set}
	a.ID = artifactID(a.Kind, a.Name, a.Version, p.Machine())
	if l.artifacts[a.ID] != nil {
		l.say(manifest.Problem{Path: at, Message: p.System() + " stands twice", Advice: "keep one of the two, with all its repositories"})
		return
	}
	l.artifacts[a.ID] = a
}

// packagesOf gives the names of the packages that hosts get, sorted: those that
// every host gets, those that the config's time zone takes and its components come
// as, and the config's own.
func (l *locker) packagesOf(format string) []string {
	names := slices.Concat(l.catalog.systems.Packages[format], l.named)
	if l.cluster.Spec.System.Timezone != "" {
		names = append(names, l.catalog.systems.Timezone[format]...)
	}
	if format == manifest.Deb {
		names = append(names, l.cluster.Spec.System.Debs...)
	} else {
		names = append(names, l.cluster.Spec.System.RPMs...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// asPackage notes a component that comes as a package of the operating system.
func (l *locker) asPackage(component *Component, w want) {
	if len(l.cluster.Spec.Bundle.OperatingSystems) > 0 {
		l.named = append(l.named, component.Packages...)
		return
	}
	l.say(manifest.Problem{
		Severity: manifest.Warning, Path: w.path,
		Message: fmt.Sprintf("%s comes as a package of the operating system, which this bundle does not hold", w.component),
		Advice: "name the hosts' operating systems under spec.bundle.operatingSystems, or have it in the package repositories of the site: " +
			strings.Join(component.Packages, ", "),
	})
}

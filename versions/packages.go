package versions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// packages adds a repository of packages for each operating system of the config, each of its
// releases and each architecture of the bundle. The names are resolved to packages later, from
// the distribution's repositories.
func (l *locker) packages() {
	formats := map[string]bool{}
	for i, system := range l.cluster.Spec.Bundle.OperatingSystems {
		at := fmt.Sprintf("spec.bundle.operatingSystems[%d]", i)
		format := l.catalog.systems.format(system)
		if format == "" {
			l.report(manifest.Problem{
				Path: at + ".name", Message: fmt.Sprintf("the package format of %s is unknown", system.Name),
				Advice: nearest(system.Name, l.catalog.systems.known()) + ", or write format: deb or format: rpm",
			})
			continue
		}
		formats[format] = true
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
		if len(own.names) > 0 && !formats[own.format] {
			l.report(manifest.Problem{
				Severity: manifest.Warning, Path: own.path, Message: "lists packages that the bundle does not contain: no operating system in spec.bundle.operatingSystems has this package format",
				Advice: "list the hosts' operating systems in spec.bundle.operatingSystems",
			})
		}
	}
}

// repository adds one repository.
func (l *locker) repository(at string, p manifest.Platform, set *manifest.PackageSet) {
	a := &manifest.Artifact{Kind: manifest.Packages, Name: p.System(), Version: p.Release, Platform: p, Sets: l.sets(), Packages: set}
	a.ID = artifactID(a.Kind, a.Name, a.Version, p.Machine())
	if l.artifacts[a.ID] != nil {
		l.report(manifest.Problem{Path: at, Message: p.System() + " is listed twice", Advice: "keep one of the two, with all its repositories"})
		return
	}
	l.artifacts[a.ID] = a
}

// packagesOf returns the names of the packages for hosts, sorted: those for every host, those
// that the time zone and the components of the config require, and those that the config lists.
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

// asPackage adds the operating system packages of a component.
func (l *locker) asPackage(component *Component, w want) {
	if len(l.cluster.Spec.Bundle.OperatingSystems) > 0 {
		l.named = append(l.named, component.Packages...)
		return
	}
	l.report(manifest.Problem{
		Severity: manifest.Warning, Path: w.path,
		Message: fmt.Sprintf("%s is an operating system package, which this bundle does not contain", w.component),
		Advice: "list the hosts' operating systems in spec.bundle.operatingSystems, or provide the packages in the site's package repositories: " +
			strings.Join(component.Packages, ", "),
	})
}

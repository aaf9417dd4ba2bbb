package sbom

import (
	"net/url"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// packagesPart adds a package repository and its packages to a bill of materials.
func packagesPart(a manifest.Artifact) part {
	whole := part{id: a.ID, kind: a.Kind, name: a.Name, version: a.Version, platform: a.Platform.String()}
	for _, m := range a.Members {
		if m.Package == "" {
			whole.parts = append(whole.parts, part{
				id: a.ID + "/" + m.Path, kind: manifest.File, name: a.Name + "/" + m.Path, version: a.Version,
				sha256: m.SHA256, platform: whole.platform, file: m.Path,
			})
		}
	}
	for _, p := range a.PackageList() {
		whole.parts = append(whole.parts, part{
			id: a.ID + "/" + p.Path, kind: a.Kind, name: p.Name, version: p.Version, packaged: true,
			sha256: p.SHA256, address: p.Address, platform: whole.platform, file: p.Path,
			purl: packageURL(a, p),
		})
	}
	return whole
}

// packageURL returns the package URL of a package as the purl specification defines it for
// the type: the epoch of an rpm is a qualifier, that of a deb is part of the version.
func packageURL(a manifest.Artifact, p manifest.Package) string {
	version, qualifiers := p.Version, url.Values{"arch": {p.Arch}, "distro": {a.Platform.System()}}
	if a.Packages.Format == manifest.RPM {
		if epoch, rest, ok := strings.Cut(version, ":"); ok {
			version = rest
			if epoch != "0" {
				qualifiers.Set("epoch", epoch)
			}
		}
	}
	return purl(a.Packages.Format+"/"+a.Platform.Distribution, p.Name, version, qualifiers)
}

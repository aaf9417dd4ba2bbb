package bundle

import (
	"net/url"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
)

// packageItems gives what a diff names of a repository: its packages, and its
// metadata as one item with the repository's name.
func packageItems(a manifest.Artifact) []Item {
	index := Item{Kind: a.Kind, Name: a.Name, Version: a.Version, Platform: a.Platform.String()}
	sums := ""
	for _, m := range a.Members {
		if m.Package == "" {
			index.Size += m.Size
			sums += m.Path + " " + m.SHA256 + "\n"
		}
	}
	index.Digest = digest.FromString(sums).String()
	all := []Item{index}
	for _, p := range PackagesOf(a) {
		all = append(all, Item{Kind: a.Kind, Name: p.Name, Version: p.Version, Platform: index.Platform, Size: p.Size, Digest: "sha256:" + p.SHA256})
	}
	return all
}

// packagesPart gives a repository of packages, with these, to a bill of materials.
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
	for _, p := range PackagesOf(a) {
		whole.parts = append(whole.parts, part{
			id: a.ID + "/" + p.Path, kind: a.Kind, name: p.Name, version: p.Version, packaged: true,
			sha256: p.SHA256, address: p.Address, platform: whole.platform, file: p.Path,
			purl: packageURL(a, p),
		})
	}
	return whole
}

// packageURL is the package URL of a package, as its type's part of the purl
// specification has it: an rpm's epoch is a qualifier, a deb's part of the version.
func packageURL(a manifest.Artifact, p Package) string {
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

package bundle

import (
	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
)

// packageItems returns the items of a repository in a diff: its packages, and its metadata
// as one item with the repository's name.
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
	for _, p := range a.PackageList() {
		all = append(all, Item{Kind: a.Kind, Name: p.Name, Version: p.Version, Platform: index.Platform, Size: p.Size, Digest: "sha256:" + p.SHA256})
	}
	return all
}

package bundle

import (
	"github.com/mensylisir/kubexm/bundle/discover"
	"github.com/mensylisir/kubexm/manifest"
)

// DiscoveredImage is one discovered image, with its pins in a lock.
type DiscoveredImage struct {
	discover.Image
	Addons    []string `json:"addons"`
	Sets      []string `json:"sets"`
	Listed    bool     `json:"listed"` // in the matrix or the config
	Digest    string   `json:"digest,omitempty"`
	Platforms []string `json:"platforms"` // that the lock pins; empty if not pinned yet
}

// DiscoveredImages returns the discovered images with their pins in l.
func DiscoveredImages(l *manifest.Lock, found []ReferencedImage) []DiscoveredImage {
	rows := []DiscoveredImage{}
	for _, f := range found {
		row := DiscoveredImage{Image: f.Image, Addons: f.Owners, Sets: f.Sets, Platforms: []string{}}
		for _, im := range l.Images {
			if !Satisfies(im, f.Reference) {
				continue
			}
			row.Listed, row.Digest = im.Trust != manifest.FromUpstream, im.Digest
			for _, p := range im.Platforms {
				row.Platforms = append(row.Platforms, p.Platform.String())
			}
			break
		}
		rows = append(rows, row)
	}
	return rows
}

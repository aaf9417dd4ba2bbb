package bundle

import (
	"github.com/mensylisir/kubexm/bundle/discover"
	"github.com/mensylisir/kubexm/manifest"
)

// FoundImage is one image that was found, and what a lock knows of it.
type FoundImage struct {
	discover.Image
	Addons    []string `json:"addons"`
	Sets      []string `json:"sets"`
	Listed    bool     `json:"listed"` // in the matrix or the config
	Digest    string   `json:"digest,omitempty"`
	Platforms []string `json:"platforms"` // that the lock pins; none while it does not know
}

// FoundImages says of each image what l knows of it.
func FoundImages(l *manifest.Lock, found []Found) []FoundImage {
	rows := []FoundImage{}
	for _, f := range found {
		row := FoundImage{Image: f.Image, Addons: f.Owners, Sets: f.Sets, Platforms: []string{}}
		for _, im := range l.Images {
			if !Answers(im, f.Reference) {
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

package bundle

import (
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

// Summary describes a bundle in a few lines. `bundle show` prints it, and it can be read
// with only tar and zstd.
type Summary struct {
	Cluster   string              `json:"cluster"`
	Serial    int64               `json:"serial"`
	Created   time.Time           `json:"created"`
	Sets      []manifest.Set      `json:"sets"`
	Platforms []manifest.Platform `json:"platforms"`
	Artifacts int                 `json:"artifacts"` // files, archives of files and repositories of packages
	Files     int                 `json:"files"`     // files in these, without packages
	FileBytes int64               `json:"fileBytes"`
	// Packages counts operating system packages; a package for several systems counts for
	// each.
	Packages     int   `json:"packages,omitempty"`
	PackageBytes int64 `json:"packageBytes,omitempty"` // with their repositories' metadata
	Images       int   `json:"images"`
	// ImageBytes counts a layer that several images share once per image.
	ImageBytes int64 `json:"imageBytes"`
}

// Summarize computes the summary of l.
func Summarize(l *manifest.Lock) Summary {
	s := Summary{
		Cluster: l.Cluster, Serial: l.Serial, Created: l.Created.UTC(), Sets: l.Sets, Platforms: l.Platforms,
		Artifacts: len(l.Artifacts), Images: len(l.Images),
	}
	for _, a := range l.Artifacts {
		if a.Kind == manifest.Packages {
			s.Packages += len(a.PackageList())
			s.PackageBytes += bytesOf(a)
			continue
		}
		for _, b := range a.Blobs() {
			s.Files++
			s.FileBytes += b.Size
		}
	}
	for _, im := range l.Images {
		s.ImageBytes += im.Size
		for _, p := range im.Platforms {
			s.ImageBytes += p.Size + p.Content
		}
	}
	return s
}

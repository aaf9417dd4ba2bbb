package fetch

import "github.com/mensylisir/kubexm/manifest"

// Content is one blob of an image.
type Content struct {
	Digest    string // "sha256:…"
	Size      int64  // bytes
	MediaType string
	Role      Role
	Platform  manifest.Platform // whose it is; zero for an index, and for what several platforms share
}

// Role says what a Content is in its image.
type Role string

// The roles of content.
const (
	IndexRole    Role = "index"
	ManifestRole Role = "manifest"
	ConfigRole   Role = "config"
	LayerRole    Role = "layer"
)

// document tells whether a registry serves the content as a manifest, rather
// than as a blob.
func (c Content) document() bool { return c.Role == IndexRole || c.Role == ManifestRole }

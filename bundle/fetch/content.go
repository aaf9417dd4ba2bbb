package fetch

import "github.com/mensylisir/kubexm/manifest"

// Content is one blob of an image.
type Content struct {
	Digest    string // "sha256:…"
	Size      int64  // bytes
	MediaType string
	Role      Role
	Platform  manifest.Platform // zero for an index, and for content that several platforms share
}

// Role is the role of a Content in its image.
type Role string

// The roles of content.
const (
	IndexRole    Role = "index"
	ManifestRole Role = "manifest"
	ConfigRole   Role = "config"
	LayerRole    Role = "layer"
)

// document reports whether a registry serves the content as a manifest, not as a blob.
func (c Content) document() bool { return c.Role == IndexRole || c.Role == ManifestRole }

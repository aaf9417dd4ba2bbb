package runtime

import (
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runtime/cri"
)

// Names gives images the digests that the site's registry has; nil is upstream's.
type Names = func(*steps.Host) (registry.Mapper, error)

// Tags tells whether the tags of the site's registry name these images; it may be nil.
type Tags = func(context.Context, *steps.Host, []manifest.ImagePin) error

// Engine is how a container runtime is brought to nodes.
type Engine struct {
	// Install brings its programs, and those that every runtime has beside it. Remove is
	// the inverse.
	Install, Remove steps.Step
	// Start configures and starts it, with images from the site's registry where that is
	// not nil. Stop is the inverse; images may stay, for a runtime that comes later.
	Start func(*cri.Mirrors) steps.Step
	Stop  func(from *cri.Mirrors, keep bool) steps.Step
	// Restart restarts it; containers go on.
	Restart steps.Step
	// Preload pulls images by the names of their components, and keeps them on the node.
	Preload func(names []string, at Names, tags Tags) steps.Step
	// Import brings all images of the bundle to a node of a site without a registry.
	Import func([]manifest.Need) steps.Step
}

// Of gives the runtime of a config.
func Of(c *manifest.Cluster) Engine {
	switch part.RuntimeOf(c).Name {
	// What has no steps yet is refused where it would be brought. A plan that takes a
	// cluster away is made for it too, and looks for what can have been installed.
	default:
		return ofContainerd(c)
	}
}

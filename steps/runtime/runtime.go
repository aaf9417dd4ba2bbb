package runtime

import (
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runtime/cri"
)

// Names returns the mapping of images to their digests in the site's registry; nil means
// upstream's digests.
type Names = func(*steps.Host) (registry.Mapper, error)

// Tags checks that the tags of the site's registry refer to these images; it may be nil.
type Tags = func(context.Context, *steps.Host, []manifest.ImagePin) error

// Engine has the steps of a container runtime.
type Engine struct {
	// Install installs its programs, and those that every runtime needs. Remove is the
	// inverse.
	Install, Remove steps.Step
	// Start configures and starts it, with images from the site's registry if from is not
	// nil. Stop is the inverse; if keep is set it preserves the images for a later
	// installation.
	Start func(*cri.Mirrors) steps.Step
	Stop  func(from *cri.Mirrors, keep bool) steps.Step
	// Restart restarts it; containers continue to run.
	Restart steps.Step
	// Preload pulls images, given by the names of their components, and pins them on the
	// node. at and tags may be nil.
	Preload func(names []string, at Names, tags Tags) steps.Step
	// Import imports the bundle's images on a node of a site without a registry.
	Import func([]manifest.Need) steps.Step
}

// Of returns the runtime of a config.
func Of(c *manifest.Cluster) Engine {
	switch part.RuntimeOf(c).Name {
	// The installation of a runtime without steps is refused elsewhere. A deletion is planned
	// for it too, and removes what may have been installed.
	default:
		return ofContainerd(c)
	}
}

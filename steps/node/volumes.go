package node

import (
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// volumeFolder is the folder with the volumes of a node. Every user may write to a volume, so that
// only root reaches it.
func volumeFolder(c *manifest.Cluster) []op.Resource {
	return []op.Resource{op.Dir{Path: c.Spec.Storage.OpenEBS.BasePath, Attr: runner.Attr{Mode: 0o700, Owner: "root", Group: "root"}, Own: true}}
}

// MakeVolumeFolder creates the folder in which volumes of a node are created.
func MakeVolumeFolder(c *manifest.Cluster) steps.Step {
	return op.Ensure("node.make-volume-folder", volumeFolder(c))
}

// RemoveVolumes removes that folder with all volumes. Volumes in a folder that existed before stay.
func RemoveVolumes(c *manifest.Cluster) steps.Step {
	return op.Remove("node.remove-volumes", volumeFolder(c), op.Destroys, func(m *steps.Meta) { m.Timeout = time.Hour }) // millions of files
}

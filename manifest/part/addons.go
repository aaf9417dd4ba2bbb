package part

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest"
)

// OpenEBS is the name of the program that provides volumes from a folder of each node, and of its
// images.
const OpenEBS = "openebs"

// NFD is the name of the program that labels nodes with the features of their hardware, and of its
// image.
const NFD = "node-feature-discovery"

// NFS is the name of the program that provides volumes from an NFS server, and of its image.
const NFS = "nfs-provisioner"

// HasNFS reports whether a cluster has volumes from an NFS server.
func HasNFS(c *manifest.Cluster) bool { return c.Spec.Storage.NFS.Server != "" }

// NFSIsDefault reports whether claims without a StorageClass get such a volume.
func NFSIsDefault(c *manifest.Cluster) bool { return !HasOpenEBS(c) && !HasLonghorn(c) }

// HasOpenEBS reports whether a cluster has volumes from a folder of each node.
func HasOpenEBS(c *manifest.Cluster) bool { return c.Spec.Storage.OpenEBS.BasePath != "" }

// OpenEBSIsDefault reports whether claims without a StorageClass get such a volume. The manifest of
// longhorn makes its own class the default.
func OpenEBSIsDefault(c *manifest.Cluster) bool { return !HasLonghorn(c) }

// HasLonghorn reports whether longhorn is among the add-ons, which provides replicated volumes.
func HasLonghorn(c *manifest.Cluster) bool {
	return slices.ContainsFunc(c.Spec.Addons, func(a manifest.Addon) bool { return a.Name == "longhorn" })
}

// VolumeModules are the kernel modules by which nodes have volumes, with the field that asks for them:
// those of longhorn by iSCSI (https://longhorn.io/docs/1.8.0/deploy/install/#installation-requirements),
// those of an NFS server by the kernel's client.
func VolumeModules(c *manifest.Cluster) (out []VolumeModule) {
	if HasLonghorn(c) {
		out = append(out, VolumeModule{"iscsi_tcp", "longhorn from spec.addons"})
	}
	if HasNFS(c) {
		out = append(out, VolumeModule{"nfs", "spec.storage.nfs"})
	}
	return out
}

// VolumeModule is a kernel module, and what has to be removed if it is absent.
type VolumeModule struct{ Name, Field string }

// Addons returns the add-ons of a cluster in the order of their installation: those that other fields
// ask for come first, because the listed ones may need volumes.
func Addons(c *manifest.Cluster) []manifest.Addon {
	var out []manifest.Addon
	if HasOpenEBS(c) {
		out = append(out, manifest.Addon{Name: OpenEBS})
	}
	if HasNFS(c) {
		out = append(out, manifest.Addon{Name: NFS})
	}
	if c.Spec.Kubernetes.NodeFeatureDiscovery.Enabled {
		out = append(out, manifest.Addon{Name: NFD})
	}
	return append(out, c.Spec.Addons...)
}

// HasOwnManifest reports whether kubexm has its own manifest of an add-on: the version matrix has only
// the images of these.
func HasOwnManifest(a manifest.Addon) bool {
	return a.Source == "" && a.Form() != manifest.Chart && slices.Contains([]string{OpenEBS, NFS, NFD, "metrics-server"}, a.Name)
}

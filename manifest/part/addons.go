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

// HasOpenEBS reports whether a cluster has volumes from a folder of each node.
func HasOpenEBS(c *manifest.Cluster) bool { return c.Spec.Storage.OpenEBS.BasePath != "" }

// OpenEBSIsDefault reports whether claims without a StorageClass get such a volume. The manifest of
// longhorn makes its own class the default.
func OpenEBSIsDefault(c *manifest.Cluster) bool { return !HasLonghorn(c) }

// HasLonghorn reports whether longhorn is among the add-ons, which provides replicated volumes.
func HasLonghorn(c *manifest.Cluster) bool {
	return slices.ContainsFunc(c.Spec.Addons, func(a manifest.Addon) bool { return a.Name == "longhorn" })
}

// LonghornModules are the kernel modules that longhorn needs: nodes have its volumes by iSCSI
// (https://longhorn.io/docs/1.8.0/deploy/install/#installation-requirements).
func LonghornModules(c *manifest.Cluster) []string {
	if !HasLonghorn(c) {
		return nil
	}
	return []string{"iscsi_tcp"}
}

// Addons returns the add-ons of a cluster in the order of their installation: those that other fields
// ask for come first, because the listed ones may need volumes.
func Addons(c *manifest.Cluster) []manifest.Addon {
	var out []manifest.Addon
	if HasOpenEBS(c) {
		out = append(out, manifest.Addon{Name: OpenEBS})
	}
	if c.Spec.Kubernetes.NodeFeatureDiscovery.Enabled {
		out = append(out, manifest.Addon{Name: NFD})
	}
	return append(out, c.Spec.Addons...)
}

// HasOwnManifest reports whether kubexm has its own manifest of an add-on: the version matrix has only
// the images of these.
func HasOwnManifest(a manifest.Addon) bool {
	return a.Source == "" && a.Form() != manifest.Chart && slices.Contains([]string{OpenEBS, NFD, "metrics-server"}, a.Name)
}

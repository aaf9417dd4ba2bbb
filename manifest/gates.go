package manifest

// GateRemoved reports whether a feature gate was removed before a Kubernetes version. A
// component does not start with a feature gate that it does not know.
func GateRemoved(name, kubernetesVersion string) bool {
	last, known := goneGates[name]
	return known && minor(kubernetesVersion) > last
}

// goneGates are removed feature gates, with the last minor version that supports them. Source:
// the page of each gate in the Kubernetes documentation (kubernetes/website, content/en/docs/
// reference/command-line-tools-reference/feature-gates/NAME.md: "removed: true", and toVersion
// of the stage "stable"). pkg/features of v1.32.2 has none of them.
var goneGates = map[string]int{
	"CSIMigration":           26,
	"CSIStorageCapacity":     27,
	"EphemeralContainers":    26,
	"ExpandCSIVolumes":       26,
	"GenericEphemeralVolume": 24,
	"IPv6DualStack":          24,
	"NetworkPolicyEndPort":   26,
	"PodSecurity":            27,
	"TTLAfterFinished":       24,
}

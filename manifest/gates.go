package manifest

// GateGone tells whether a feature gate is known to be gone from a Kubernetes
// version: a component that is told of it would not start.
func GateGone(name, kubernetesVersion string) bool {
	last, known := goneGates[name]
	return known && minor(kubernetesVersion) > last
}

// goneGates are feature gates and the last minor version that knew them. From
// Kubernetes' own page of each gate (kubernetes/website, content/en/docs/
// reference/command-line-tools-reference/feature-gates/NAME.md: "removed: true",
// and toVersion of the stage "stable"); pkg/features of v1.32.2 has none of them.
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

package manifest

// GateGone tells whether a feature gate is known to be gone from a Kubernetes
// version: a component that is told of it would not start.
func GateGone(name, kubernetesVersion string) bool {
	last, known := goneGates[name]
	return known && minor(kubernetesVersion) > last
}

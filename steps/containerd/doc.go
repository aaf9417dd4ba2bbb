// Package containerd installs the container runtime from the bundle: containerd
// with runc, the CNI plugins, crictl and nerdctl, its configuration and unit, and the
// mirrors through which every image comes from the site's registry.
//
// It may import steps, steps/op, registry and manifest.
package containerd

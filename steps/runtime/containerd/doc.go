// Package containerd installs containerd from the bundle, with runc, nerdctl and what every
// runtime needs. It writes its configuration and unit, and the hosts.toml files with which
// every image is pulled from the site's registry.
//
// It may import steps, steps/op, steps/runtime/cri, registry and manifest.
package containerd

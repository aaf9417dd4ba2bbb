// Package containerd installs containerd from the bundle, with runc, nerdctl and what
// every runtime has beside it: its configuration and unit, and the files by which every
// image comes from the site's registry.
//
// It may import steps, steps/op, steps/runtime/cri, registry and manifest.
package containerd

// Package addon installs what a config names under spec.addons: manifests and
// charts out of the bundle, one after another, each waited for.
//
// It may import steps, steps/op, steps/controlplane, steps/kubectl, registry and manifest.
package addon

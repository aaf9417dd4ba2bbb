// Package addon installs the add-ons of spec.addons, which are manifests and charts of the
// bundle. It installs them one after another, and waits for each.
//
// It may import steps, steps/op, steps/controlplane, steps/kubectl, registry and manifest.
package addon

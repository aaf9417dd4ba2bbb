// Package network installs the pod network. It applies upstream's manifest from the bundle,
// edited for the settings of the config, or installs upstream's chart with values for them.
//
// It may import steps, steps/op, steps/kubectl, steps/addon and manifest.
package network

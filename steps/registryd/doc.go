// Package registryd runs the CNCF distribution registry as a systemd service on the registry
// host: a binary from the bundle, TLS with a CA of the cluster, one user that pushes and one
// that pulls. It fills the registry directly from the bundle. It also checks and fills an
// existing registry, and records the images that have other digests in it.
//
// It may import steps, steps/connector, steps/op, steps/pki, registry and manifest.
package registryd

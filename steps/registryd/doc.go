// Package registryd runs the distribution registry as a service of the registry
// host: a binary from the bundle, TLS from a CA of the site's own, one user who
// pushes and one who pulls. It also fills it, straight from the bundle; and it asks
// and fills a registry that stands already, and says which digests are others there.
//
// It may import steps, steps/connector, steps/op, steps/pki, registry and manifest.
package registryd

// Package installer will own deciding and ordering: it turns a config, a bundle
// and what the hosts report into a graph of steps, and runs it. So far it holds
// this comment only: nothing of it is built.
//
// It may import steps, registry, bundle, packaging, versions and manifest.
package installer

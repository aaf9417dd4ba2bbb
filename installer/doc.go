// Package installer will own one run: opening a bundle, reaching the hosts,
// gathering what they report, and keeping the run's journal and lock. That is
// not built. Its two sub-folders are: plan, the shape of work, and engine, which
// carries it out.
//
// It may import steps, registry, bundle, packaging, versions and manifest.
package installer

// Package packaging will own operating system packages: which packages a set of
// names means on one distribution and release, read from the distribution's own
// signed metadata, and an offline repository of them. So far it holds this
// comment only: nothing of it is built.
//
// It may import versions and manifest.
package packaging

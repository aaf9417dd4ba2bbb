// Package registry will own names and transfer into a container registry: which
// name an image has at a site, which of a bundle's images a registry lacks, and
// sending those straight from the archive. So far it holds this comment only:
// nothing of it is built.
//
// It may import bundle, packaging, versions and manifest.
package registry

// Package mirror keeps a part of the machine's own package repositories: the
// metadata as it is signed, and the packages that a lab's clusters ask for. Tests
// serve it where a site's bundle is built, so that what they install is real and
// they ask nobody outside.
//
// It may import packaging, versions, manifest and testdata/lab/components.
package mirror

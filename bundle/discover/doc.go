// Package discover finds the images that manifests reference.
//
// A manifest is read as a tree, not as text. Images are found under the key `image`
// anywhere; in the fields of custom resources (imageName, repository with tag, digest with
// tag); in arguments (--reloader=quay.io/…:v1); in the values of environment variables; and
// in documents inside ConfigMaps. Text that only looks like a reference, such as a label's
// domain or host:port, is excluded by its place in the tree. Precision matters in both
// directions: a false image fails the build, and a missed image fails at the site.
//
// discover belongs to bundle and imports nothing of this module.
package discover

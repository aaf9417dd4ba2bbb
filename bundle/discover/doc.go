// Package discover finds the images that manifests ask for.
//
// A manifest is read as a tree, not as text. An image stands in it under `image`
// anywhere; in the odd places of custom resources (imageName, repository beside
// tag, digest beside tag); in arguments (--reloader=quay.io/…:v1); in the values
// of variables; and in documents within ConfigMaps. What merely looks like a
// reference, a label's domain or host:port, is told apart by its place: an image
// too many fails a build, and one too few fails on the site.
//
// discover belongs to bundle and imports nothing of this module.
package discover

// Package chart reads, packs and renders Helm charts.
//
// A chart is untrusted input. An archive is read within limits on size and count. Links,
// paths that point outside the chart and duplicate files are rejected before Helm's own
// loader reads the chart. Helm's own engine renders it, so that the images found are those
// that helm installs at the site. Rendering uses neither a cluster nor the network.
//
// chart belongs to bundle and imports nothing of this module.
package chart

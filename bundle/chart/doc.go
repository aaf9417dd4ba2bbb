// Package chart reads, packs and renders Helm charts.
//
// A chart comes from strangers: an archive is read within limits on size and
// count, and a link, a path that leads out of the chart, or a file that stands
// twice is refused before Helm's own loader sees it. Rendering is Helm's own
// engine, so that what is found here is what helm will install on the site. It
// asks no cluster and no network.
//
// chart belongs to bundle and imports nothing of this module.
package chart

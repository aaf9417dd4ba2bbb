// Package fetch downloads what a lock pins: files over HTTP and images from registries, as
// streams or into a cache by their sha256. Downloads can be continued, and every file is
// checked against the lock before it gets the name of its digest.
//
// # The cache
//
// A cache is a directory that builds and processes share:
//
//	sha256/ab/<64 hex>     blobs; the name is the sha256 of the content
//	derived/<64 hex>.json  the selected entries of the archive with that sha256, see below
//	visits/<64 hex>.json   the content last seen at an address of package metadata, see below
//	archives/<64 hex>.json a bundle that a build wrote elsewhere, from which builds read blobs
//	partial/               work in progress: <key>.part and <key>.part.meta of an
//	                       interrupted download, <key>.lock, and write-* files
//
// A blob is written in partial/, hashed, synced and then renamed to its name. A process
// that is killed at any moment leaves complete blobs and partial files, but never a partial
// blob. Readers hash a blob while they read it and discard one that does not match its name
// (Cache.Discard), because a disk may return wrong data even without a crash.
//
// An archive is not stored after its selected entries have become blobs. derived/ records
// their digests, so that a filled cache does not need the archive again.
//
// Metadata of package repositories is stored as blobs too. visits/ records, under the
// sha256 of the address, the blob and the version that the server stated. A later run only
// asks the server whether that version is still current.
//
// The key of a partial file is the expected digest or, if none is known yet, a hash of the
// address. A lock file per key (flock) allows one process to work on it; the others wait
// and then find the blob. Opening a cache removes write-* files older than a day and
// partial downloads older than a month. The complete cache may be deleted at any time that
// no build runs. Commands hold a shared lock on in-use.lock while they use the cache; Prune
// needs an exclusive lock on it, or removes nothing. A blob's modification time is the time
// of its last use, to the hour.
//
// # The network
//
// Addresses in a lock are upstream's own. Options.Sources may replace them, but never
// changes an expected digest. Plain http is used only if Sources allows it, and for package
// repositories, which are signed. Proxies come from the environment, registry credentials
// from docker's configuration. Interrupted downloads are continued. Requests to a source
// that stalls, is overloaded or fails temporarily are retried.
//
// fetch belongs to bundle and imports packaging, manifest and durable alone of this module.
package fetch

// Package fetch brings what a lock pins onto this machine: files over http and
// images from registries, into a cache of content by sha256, resumable and
// checked against the lock before anything calls them by their digest.
//
// # The cache
//
// A cache is a directory that builds and processes share:
//
//	sha256/ab/<64 hex>     blobs; the name is the sha256 of the content
//	derived/<64 hex>.json  which members an archive of that sha256 had, see below
//	visits/<64 hex>.json   what stood at an address of packages' metadata, see below
//	partial/               work in progress: <key>.part and <key>.part.meta of a
//	                       broken download, <key>.lock, and write-* files
//
// A blob appears under its name only after its bytes were hashed and synced: it
// is written in partial/, checked, synced and renamed.
// Killed at any moment, a process leaves whole blobs and partial files, never a
// half blob. Who reads a blob hashes it while reading, and discards one that is
// not what its name says (Cache.Discard): a disk may lie where a crash does not.
//
// An archive is not kept once its wanted members are blobs. What they were is
// written in derived/, so that a warm cache answers without the archive.
//
// Metadata of package repositories is a blob, too. visits/ has, under the sha256 of
// its address, which blob it was and what the server called that version: in a later
// run it is asked only whether that still stands.
//
// The key of a partial file is the expected digest, or, where none is known yet,
// a hash of the address. A lock file per key (flock) lets one process work on it;
// the others wait and then find the blob. Files in write-* older than a day and
// partial downloads older than a month are removed when a cache is opened.
// A cache may be deleted whole at any time that no build runs. Commands hold
// in-use.lock shared while they work with it; Prune takes it alone or removes
// nothing. A blob's time of change is when it was last used, to the hour.
//
// # The network
//
// Addresses in a lock are upstream's own. Options.Sources may replace them; that
// never changes an expected digest. Plain http is spoken only where Sources says
// so, and to repositories of packages, which are signed. Proxies come from the
// environment, registry credentials from docker's configuration. Downloads
// continue where they broke off, and a source that stalls, is busy or fails for a
// while is asked again.
//
// fetch belongs to bundle and imports packaging, manifest and durable alone of this module.
package fetch

// Package archive owns the bytes of a bundle's .tar.zst: deterministic when
// written, distrustful when read.
//
// The format is specified in docs/bundle-format.md. In short: a tar stream
// whose every member lies in zstd frames of its own, with an index in a
// trailing skippable frame. Members that do not compress are stored as raw
// blocks, so their places follow from their sizes alone:
//
//	oci-layout  index.json  head…  kubexm/signatures  stored…  compressed…  end  [index]
//	|<------------------ NewLayout knows every offset ---->|
//
// To write: NewLayout, Create, then WriteStored for every stored blob (in any
// order, many at once) and beside it WriteCompressed, then Close. The file
// appears under its name only when it is complete and on the disk.
//
// To read: Open checks the index and gives every blob by digest, hashed while
// it is read; Verify checks every byte of the file; Extract needs no index and
// no seeking, and unpacks a stream into a directory.
//
// Nothing here knows what a bundle means: which blobs belong to it, who signed
// it, what its root says. Package bundle does. archive imports durable
// alone of this module.
package archive

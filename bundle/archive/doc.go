// Package archive writes and reads the bytes of a bundle's .tar.zst. Writing is
// deterministic; reading trusts no byte of the file.
//
// docs/reference/bundle-format.md specifies the format. In short, it is a tar stream in which every
// entry has its own zstd frames, with an index in a trailing skippable frame. Entries that
// do not compress are stored as raw blocks, so that their offsets follow from their sizes
// alone:
//
//	oci-layout  index.json  head…  kubexm/signatures  stored…  compressed…  end  [index]
//	|<---- NewLayout computes every offset up to here ---->|
//
// To write, call NewLayout and Create. Then call Write or Blob for every blob, in any order and
// concurrently, beside them WriteStaged, and finally Close. WriteCompressed instead of
// WriteStaged reads the compressed blobs in their order. The file appears under its name only
// when it is complete and synced. With WriteOptions.Resume, what a Writer that was suspended or
// killed has written is continued by the next.
//
// To read, call Open, which checks the index. Blob returns a blob by its digest and hashes
// it while it is read. Verify checks every byte of the file. Extract needs neither index
// nor seeking; it unpacks a stream into a directory.
//
// This package does not know the meaning of a bundle: which blobs belong to it, who signed
// it, or what its root contains. That is package bundle's. archive imports durable alone of
// this module.
package archive

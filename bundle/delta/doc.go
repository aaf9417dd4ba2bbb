// Package delta is what makes an archive a part of its bundle: what the archive says of
// itself (Delta), which blobs a site can do without (Saved.Carry), and from where those that
// are left out are read (Rest). It knows blobs by their digests, and neither archives nor
// what a bundle is.
package delta

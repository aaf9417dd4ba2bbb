package archive

import (
	"crypto/sha256"
	"hash"
	"io"
)

// Checked marks content that its caller has already hashed and compared with its digest,
// for example while downloading it. A Writer checks its size and does not hash it again.
type Checked struct{ io.ReadCloser }

// sumOf returns the hash for reading r.
func sumOf(r io.Reader) hash.Hash {
	if _, ok := r.(Checked); ok {
		return checkedSum{}
	}
	return sha256.New()
}

// checkedSum replaces the hash for Checked content.
type checkedSum struct{ hash.Hash }

// Write implements io.Writer.
func (checkedSum) Write(p []byte) (int, error) { return len(p), nil }

// Reset implements hash.Hash.
func (checkedSum) Reset() {}

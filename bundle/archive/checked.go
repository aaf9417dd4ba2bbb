package archive

import (
	"crypto/sha256"
	"hash"
	"io"
)

// Checked is content that its giver has seen to hash to the digest under which
// it is given, as one has who hashed it while it was downloaded. A Writer counts
// its bytes and does not hash them a second time.
type Checked struct{ io.ReadCloser }

// sumOf gives what a Writer hashes r with.
func sumOf(r io.Reader) hash.Hash {
	if _, ok := r.(Checked); ok {
		return checkedSum{}
	}
	return sha256.New()
}

// checkedSum stands for the hash of Checked content.
type checkedSum struct{ hash.Hash }

// Write implements io.Writer.
func (checkedSum) Write(p []byte) (int, error) { return len(p), nil }

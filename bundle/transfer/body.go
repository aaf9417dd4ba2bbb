package transfer

import (
	"io"
	"os"
	"sync"
)

// Body returns a blob as the body of a request. It calls sent, which may be nil, with the
// number of bytes read. After a request ends early, net/http may still be reading its body:
// Close waits for that read, and no later read reaches the blob.
func Body(blob io.ReadCloser, sent func(int64)) io.ReadCloser { return &body{blob: blob, sent: sent} }

type body struct {
	mu   sync.Mutex
	blob io.ReadCloser // nil after Close
	sent func(int64)   // may be nil
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.blob == nil {
		return 0, os.ErrClosed
	}
	n, err := b.blob.Read(p)
	if b.sent != nil {
		b.sent(int64(n))
	}
	return n, err
}

func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.blob == nil {
		return nil
	}
	blob := b.blob
	b.blob = nil
	return blob.Close()
}

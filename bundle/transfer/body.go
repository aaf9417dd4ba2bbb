package transfer

import (
	"io"
	"os"
	"sync"
)

// Body gives a blob on its way into a request. It tells sent, which may be nil, how
// much was read from it. A request that ends early leaves its body to net/http,
// which may be reading it still: closing waits for that, and no read reaches the
// blob afterwards.
func Body(blob io.ReadCloser, sent func(int64)) io.ReadCloser { return &body{blob: blob, sent: sent} }

type body struct {
	mu   sync.Mutex
	blob io.ReadCloser // nil once it was closed
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

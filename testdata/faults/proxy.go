package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// answer answers one request in the upstream's stead.
type answer func(c *call)

// fault gives the answer to the nth request for an address, counted from 1; nil
// is the upstream's own.
type fault func(n int) answer

// call is one request for the address that is broken.
type call struct {
	w    http.ResponseWriter
	r    *http.Request
	next http.Handler
	p    *proxy
	body []byte // of the whole content, as the upstream has it
	etag string
	typ  string
	from int // where the range asked for begins; 0 for the whole
}

// proxy stands before an upstream and breaks one of its addresses.
type proxy struct {
	next  http.Handler
	at    string
	fault fault
	other *httptest.Server // another host, with all of the content and no fault

	mu    sync.Mutex
	count int
	fine  bool
}

func newProxy(at string, next http.Handler, f fault) *proxy {
	return &proxy{next: next, at: at, fault: f, other: httptest.NewServer(next)}
}

func (p *proxy) close() { p.other.Close() }

// mend ends the fault.
func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fine = true
}

// asked counts the requests that the fault had to do with.
func (p *proxy) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var a answer
	p.mu.Lock()
	if p.hits(r) && !p.fine {
		p.count++
		a = p.fault(p.count)
	}
	p.mu.Unlock()
	if a == nil {
		p.next.ServeHTTP(w, r)
		return
	}
	a(p.call(w, r))
}

// hits reports whether r asks for the address, where github.com sends one on too.
func (p *proxy) hits(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.EscapedPath() == p.at
}

// call asks the upstream for the whole content.
func (p *proxy) call(w http.ResponseWriter, r *http.Request) *call {
	c := &call{w: w, r: r, next: p.next, p: p}
	plain := r.Clone(r.Context())
	plain.Header.Del("Range")
	plain.Header.Del("If-Range")
	plain.URL.Path = strings.Replace(plain.URL.Path, "/github.com/", "/release-assets.githubusercontent.com/github.com/", 1)
	rec := httptest.NewRecorder()
	p.next.ServeHTTP(rec, plain)
	c.body, c.etag, c.typ = rec.Body.Bytes(), rec.Header().Get("ETag"), rec.Header().Get("Content-Type")
	if from, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		c.from, _ = strconv.Atoi(strings.TrimSuffix(from, "-")) // another form begins at 0
	}
	return c
}

// head announces a length; -1 announces none.
func (c *call) head(code, length int) {
	c.w.Header().Set("Content-Type", c.typ)
	if c.etag != "" {
		c.w.Header().Set("ETag", c.etag)
	}
	if length >= 0 {
		c.w.Header().Set("Content-Length", strconv.Itoa(length))
	}
	c.w.WriteHeader(code)
	c.flush()
}

func (c *call) flush() { _ = http.NewResponseController(c.w).Flush() } // a client that left needs none

func (c *call) write(b []byte) bool {
	_, err := c.w.Write(b)
	return err == nil
}

// cut ends the connection where it is.
func (c *call) cut() {
	c.flush()
	panic(http.ErrAbortHandler) // net/http's way to end a connection
}

// part answers a range, or the whole where none was asked for, with b for the content.
func (c *call) part(b []byte) {
	if c.r.Header.Get("Range") == "" {
		c.head(http.StatusOK, len(b))
		c.write(b)
		return
	}
	c.w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", c.from, len(b)-1, len(b)))
	c.head(http.StatusPartialContent, len(b)-c.from)
	c.write(b[c.from:])
}

// other gives content of the same length that is another.
func (c *call) other() []byte {
	b := bytes.Clone(c.body)
	for i := range b {
		b[i] ^= 0x55
	}
	return b
}

// flipped gives the content with one other bit.
func (c *call) flipped() []byte {
	b := bytes.Clone(c.body)
	b[len(b)/3] ^= 1
	return b
}

// wait lets d pass, or less where ctx ends before.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

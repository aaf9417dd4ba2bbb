package main

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// content serves files from disk as fast as the kernel copies them. The first request for a
// path is answered by the upstream that generates it.
type content struct {
	dir  string
	make http.Handler
	link link

	mu   sync.Mutex
	have map[string]stored // by path
}

// stored is one answer on disk; body is empty for an answer without a body.
type stored struct {
	header http.Header
	body   string
	size   int64
}

// ServeHTTP implements http.Handler.
func (c *content) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := r.URL.EscapedPath()
	c.mu.Lock()
	s, ok := c.have[at]
	c.mu.Unlock()
	if !ok {
		var err error
		if s, ok, err = c.fetch(r, at); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		if !ok {
			c.make.ServeHTTP(w, r)
			return
		}
	}
	f, err := os.Open(s.body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer f.Close()
	maps.Copy(w.Header(), s.header)
	if c.link.rate.Load() > 0 {
		w = &shared{ResponseWriter: w, link: &c.link}
	}
	http.ServeContent(w, r, "", time.Time{}, f)
}

// fetch stores the complete answer for a path; ok is false for a status other than 200.
func (c *content) fetch(r *http.Request, at string) (stored, bool, error) {
	whole := httptest.NewRequestWithContext(r.Context(), http.MethodGet, at, nil)
	whole.Host = r.Host
	if r.Header.Get("Accept") != "" {
		whole.Header.Set("Accept", r.Header.Get("Accept"))
	}
	c.mu.Lock()
	name := filepath.Join(c.dir, strconv.FormatInt(time.Now().UnixNano(), 36)+"-"+strconv.Itoa(len(c.have)))
	c.mu.Unlock()
	f, err := os.Create(name)
	if err != nil {
		return stored{}, false, err
	}
	rec := &recorder{header: http.Header{}, code: http.StatusOK, w: f}
	c.make.ServeHTTP(rec, whole)
	err = errors.Join(rec.err, f.Close())
	if err != nil || rec.code != http.StatusOK {
		return stored{}, false, errors.Join(err, os.Remove(name))
	}
	for _, own := range []string{"Content-Length", "Last-Modified", "Date"} {
		rec.header.Del(own)
	}
	s := stored{header: rec.header, body: name, size: rec.size}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.have[at] = s
	return s, true, nil
}

// list returns every path with a body, sorted.
func (c *content) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.have))
}

// bytes returns the total size of the served files.
func (c *content) bytes() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.have {
		n += s.size
	}
	return n
}

// recorder writes an answer to a file.
type recorder struct {
	header http.Header
	code   int
	w      io.Writer
	size   int64
	err    error
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) { r.code = code }

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	r.size += int64(n)
	r.err = errors.Join(r.err, err)
	return n, err
}

// link is a simulated link that all answers share.
type link struct {
	rate atomic.Int64 // bytes per second, 0 for no limit
	mu   sync.Mutex
	free time.Time // when the next byte may be sent
}

// take waits until n bytes may be sent.
func (l *link) take(n int) {
	l.mu.Lock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(n) / float64(l.rate.Load()) * float64(time.Second)))
	rest := l.free.Sub(now)
	l.mu.Unlock()
	time.Sleep(rest)
}

// shared is an answer over the link.
type shared struct {
	http.ResponseWriter
	link *link
}

// ReadFrom implements io.ReaderFrom, in parts that are large enough for the kernel's copy and
// small enough to share the link.
func (s *shared) ReadFrom(r io.Reader) (done int64, err error) {
	const part = 256 << 10
	for {
		s.link.take(part)
		n, err := io.CopyN(s.ResponseWriter, r, part)
		done += n
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, err
		}
	}
}

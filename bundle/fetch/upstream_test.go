package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

// upstream serves one handler and records requests and sent bytes.
type upstream struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	sent     int64 // bytes of bodies
}

func serve(t *testing.T, h http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(u.counted(h))
	u.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) counted(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.requests = append(u.requests, r.Clone(context.Background()))
		u.mu.Unlock()
		h(&countedWriter{w, u}, r)
	}
}

// asked counts the requests of a method, "" for all.
func (u *upstream) asked(method string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := 0
	for _, r := range u.requests {
		if method == "" || r.Method == method {
			n++
		}
	}
	return n
}

func (u *upstream) request(i int) *http.Request {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.requests[i]
}

func (u *upstream) bytesSent() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.sent
}

type countedWriter struct {
	http.ResponseWriter
	u *upstream
}

func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.u.mu.Lock()
	w.u.sent += int64(n)
	w.u.mu.Unlock()
	return n, err
}

func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// cut sends what was written and breaks the connection.
func cut(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// served serves content with Range and If-Range as a good server does.
func served(content []byte, etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if etag != "" {
			w.Header().Set("ETag", etag)
		}
		http.ServeContent(w, r, "file", time.Time{}, bytes.NewReader(content))
	}
}

// inSequence gives the first request to the first handler, and so on; the last one
// gets all that follow.
func inSequence(hs ...http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := hs[min(n, len(hs)-1)]
		n++
		mu.Unlock()
		h(w, r)
	}
}

// half sends the first half of content with its whole length, then breaks off.
func half(content []byte, etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		announce(w, content, etag)
		_, _ = w.Write(content[:len(content)/2])
		cut(w)
	}
}

func announce(w http.ResponseWriter, content []byte, etag string) {
	w.Header().Set("Content-Length", itoa(len(content)))
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	w.WriteHeader(http.StatusOK)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }
}

// noise gives n bytes that do not compress, the same for the same seed.
func noise(seed byte, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// address is upstream's; the tests' Sources lead it to the loopback.
func address(path string) string { return "https://upstream.test/" + path }

func plainFile(content []byte) manifest.Artifact {
	return manifest.Artifact{
		ID: "file/thing/1", Kind: manifest.File, Name: "thing", Version: "1",
		Address: address("thing"), Size: int64(len(content)), SHA256: sum(content),
	}
}

// options returns the options of a client that uses only u, with short waits.
func options(t *testing.T, u *upstream) Options {
	t.Helper()
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Cache: c,
		Sources: manifest.Sources{Replace: []manifest.Replacement{
			{From: "upstream.test", To: u.Listener.Addr().String(), PlainHTTP: true},
		}},
		Log:   slog.New(slog.NewTextHandler(testWriter{t}, nil)),
		Stall: 10 * time.Second, Attempts: 3, Backoff: time.Millisecond, MaxBackoff: 5 * time.Millisecond, MaxWait: 3 * time.Second,
	}
}

func client(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// mustHold checks that the cache holds content, and nothing half.
func mustHold(t *testing.T, c *Cache, content []byte) {
	t.Helper()
	f, err := c.Open(sum(content))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, content) {
		t.Errorf("cached blob differs from what it is named after")
	}
	mustBeClean(t, c)
}

// mustBeClean checks that no partial file is left.
func mustBeClean(t *testing.T, c *Cache) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(c.Dir(), "partial", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func partFile(c *Cache, key string) string { return filepath.Join(c.Dir(), "partial", key+partSuffix) }

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

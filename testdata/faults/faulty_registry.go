package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
)

// faultyRegistry is a registry in memory with a fault before it.
type faultyRegistry struct {
	*httptest.Server
	inner http.Handler // keeps the blobs
	fault registryFault

	mu    sync.Mutex
	fine  bool
	count map[string]int // requests by kind
	now   int            // requests under way
	kept  map[string]document
	lost  string // the digest of a blob that it took and does not keep
}

// Kinds of requests to a registry.
const (
	starts  = "upload starts" // POST, without a mount
	mounts  = "mount"
	sends   = "upload" // PATCH, PUT of a blob
	asks    = "ask"    // HEAD, GET
	putting = "manifest"
)

func kindOf(r *http.Request) string {
	switch {
	case r.Method == http.MethodPost && r.URL.Query().Has("mount"):
		return mounts
	case r.Method == http.MethodPost:
		return starts
	case r.Method == http.MethodHead || r.Method == http.MethodGet:
		return asks
	case strings.Contains(r.URL.Path, "/manifests/"):
		return putting
	}
	return sends
}

func (s *faultyRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.now++
	s.count[kindOf(r)]++
	fine := s.fine
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
	}()
	if !fine && s.fault.strike(w, r, s) {
		return
	}
	if strings.Contains(r.URL.Path, "/manifests/") {
		s.manifests(w, r)
		return
	}
	s.inner.ServeHTTP(w, r)
}

// document is a manifest as it was sent.
type document struct {
	typ  string
	body []byte
}

// manifests keeps manifests and gives them back. An index may name platforms
// that are not there, as registries that serve bundles have to allow; an image
// may not name a blob that is not there.
func (s *faultyRegistry) manifests(w http.ResponseWriter, r *http.Request) {
	base, _ := path.Split(r.URL.Path)
	if r.Method == http.MethodPut {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var m v1.Manifest
		if err := json.Unmarshal(body, &m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, d := range append(m.Layers, m.Config) {
			rec := httptest.NewRecorder()
			s.inner.ServeHTTP(rec, httptest.NewRequestWithContext(r.Context(), http.MethodHead, strings.Replace(base, "/manifests/", "/blobs/", 1)+d.Digest.String(), nil))
			if d.Digest != "" && rec.Code != http.StatusOK {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_BLOB_UNKNOWN","message":"blob unknown to registry"}]}`)
				return
			}
		}
		sum := fmt.Sprintf("sha256:%x", sha256.Sum256(body))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.kept[r.URL.Path], s.kept[base+sum] = document{r.Header.Get("Content-Type"), body}, document{r.Header.Get("Content-Type"), body}
		w.Header().Set("Docker-Content-Digest", sum)
		w.WriteHeader(http.StatusCreated)
		return
	}
	s.mu.Lock()
	d, ok := s.kept[r.URL.Path]
	s.mu.Unlock()
	if !ok {
		http.Error(w, "manifest unknown", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", d.typ)
	w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256(d.body)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(d.body))
}

// nth counts the requests of r's kind, r among them.
func (s *faultyRegistry) nth(r *http.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[kindOf(r)]
}

// answers refuses each request of a kind for which when says so.
func answers(kind string, code int, when func(n int) bool, header ...string) func(http.ResponseWriter, *http.Request, *faultyRegistry) bool {
	return func(w http.ResponseWriter, r *http.Request, s *faultyRegistry) bool {
		if (kind != "" && kindOf(r) != kind) || !when(s.nth(r)) {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body) // as a registry does that answers once it has all
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, `{"errors":[{"code":"`+strings.ToUpper(strings.ReplaceAll(http.StatusText(code), " ", ""))+`","message":"told to answer so"}]}`)
		return true
	}
}

func always(int) bool   { return true }
func once(n int) bool   { return n == 2 }
func thirds(n int) bool { return n%3 == 1 }

// throttles answers 429 while more than two requests are under way.
func throttles(w http.ResponseWriter, r *http.Request, s *faultyRegistry) bool {
	s.mu.Lock()
	busy := s.now > 2
	s.mu.Unlock()
	if !busy {
		wait(r.Context(), 5*time.Millisecond) // work takes a while
		return false
	}
	return answers("", http.StatusTooManyRequests, always)(w, r, s)
}

// cuts ends the connection within the second upload.
func cuts(_ http.ResponseWriter, r *http.Request, s *faultyRegistry) bool {
	if kindOf(r) == sends && once(s.nth(r)) {
		_, _ = io.CopyN(io.Discard, r.Body, 1000) // some of it
		panic(http.ErrAbortHandler)
	}
	return false
}

// forgets says that it took an upload, and keeps nothing of it.
func forgets(w http.ResponseWriter, r *http.Request, s *faultyRegistry) bool {
	digest := r.URL.Query().Get("digest")
	if kindOf(r) != sends || digest == "" || !s.loses(digest) {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Docker-Content-Digest", digest)
	w.WriteHeader(http.StatusCreated)
	return true
}

// loses reports whether a blob is the one that the registry cannot keep: the first,
// also where it comes again for another image.
func (s *faultyRegistry) loses(digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == "" {
		s.lost = digest
	}
	return s.lost == digest
}

// tagged reads every image that the registry has under its tag, to its last byte.
func (s *faultyRegistry) tagged(ctx context.Context, t registry.Target, b *bundle.Bundle, images []manifest.ImagePin) error {
	for _, im := range images {
		path, tag, err := t.Repository(im.Reference)
		if err != nil {
			return err
		}
		if got, err := s.read(ctx, path+"/manifests/"+tag); err != nil || got != im.Digest {
			continue // not there, or not yet
		}
		tree, err := b.Tree(im)
		if err != nil {
			return err
		}
		for _, d := range tree {
			kind := "/blobs/"
			if bundle.IsManifest(d.MediaType) {
				kind = "/manifests/"
			}
			if got, err := s.read(ctx, path+kind+d.Digest.String()); err != nil || got != d.Digest.String() {
				return fmt.Errorf("TAGGED AND NOT WHOLE: %s: %s is %s: %w", im.Reference, d.Digest, got, err)
			}
		}
	}
	return nil
}

// read gives the digest of what the registry has at a path.
func (s *faultyRegistry) read(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/v2/"+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.Status, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, resp.Body); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}

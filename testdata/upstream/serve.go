package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// assets is the host to which github.com redirects requests for a release's file.
const assets = "/release-assets.githubusercontent.com"

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "this upstream is read-only", http.StatusMethodNotAllowed)
		return
	}
	at := r.URL.EscapedPath()
	if strings.HasPrefix(at, "/github.com/") {
		http.Redirect(w, r, assets+at, http.StatusFound)
		return
	}
	at = strings.TrimPrefix(at, assets)
	m := &meter{ResponseWriter: w, ctx: r.Context(), s: s, at: at}
	if m.fault = s.begin(at); m.fault.answer(m) {
		return
	}
	switch {
	case at == "/token":
		s.serveToken(m, r)
	case at == "/v2" || strings.HasPrefix(at, "/v2/"):
		s.serveRegistry(m, r, strings.Trim(strings.TrimPrefix(at, "/v2"), "/"))
	default:
		s.serveFile(m, r, at)
	}
}

// serveFile answers for a file or for a digest file.
func (s *Server) serveFile(m *meter, r *http.Request, at string) {
	f, ok := s.lookFile(at)
	if !ok && s.serveFolder(m, r) {
		return
	}
	if !ok {
		http.Error(m, "no stand-in is served here: "+at, http.StatusNotFound)
		return
	}
	m.Header().Set("Content-Type", f.typ)
	m.serve(r, f.body, f.sha256)
}

func (s *Server) lookFile(at string) (file, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.files[at]; ok {
		return f, true
	}
	of, ok := s.sums[at]
	if !ok {
		return file{}, false
	}
	lines := make([]sumLine, len(of))
	for i, p := range of {
		lines[i] = sumLine{name: p[strings.LastIndex(p, "/")+1:], sha256: s.files[p].sha256}
	}
	body := digestFile(at, lines)
	sha, err := sha256Of(body)
	return file{body: body, sha256: sha, typ: "text/plain"}, err == nil
}

// serve answers with the complete content or the requested range.
func (m *meter) serve(r *http.Request, c Content, sha256 string) {
	m.size(c.Size())
	m.Header().Set("ETag", `"`+sha256+`"`)
	m.Header().Set("Accept-Ranges", "bytes")
	if m.fault.NoRange {
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	http.ServeContent(m, r, "", released, io.NewSectionReader(m.fault.spoil(c), 0, c.Size()))
}

// serveRegistry implements the read half of the distribution protocol. The path is
// NAME/manifests/REFERENCE, NAME/blobs/DIGEST, NAME/tags/list or empty.
func (s *Server) serveRegistry(m *meter, r *http.Request, path string) {
	m.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if !s.admitted(m, r, path) {
		return
	}
	if path == "" {
		m.json(map[string]string{})
		return
	}
	part := strings.Split(path, "/")
	if len(part) < 3 {
		m.refuse(http.StatusNotFound, "NAME_UNKNOWN", path)
		return
	}
	name, verb, what := strings.Join(part[:len(part)-2], "/"), part[len(part)-2], part[len(part)-1]
	s.mu.Lock()
	repo := s.repos[name]
	s.mu.Unlock()
	switch {
	case repo == nil:
		m.refuse(http.StatusNotFound, "NAME_UNKNOWN", name)
	case verb == "manifests":
		s.serveManifest(m, r, repo, what)
	case verb == "blobs":
		s.serveBlob(m, r, repo, what)
	case verb == "tags":
		s.mu.Lock()
		tags := make([]string, 0, len(repo.tags))
		for t := range repo.tags {
			tags = append(tags, t)
		}
		s.mu.Unlock()
		slices.Sort(tags)
		m.json(map[string]any{"name": name, "tags": tags})
	case verb == "referrers":
		m.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		fmt.Fprint(m, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`)
	default:
		m.refuse(http.StatusNotFound, "UNSUPPORTED", verb)
	}
}

func (s *Server) serveManifest(m *meter, r *http.Request, repo *repository, what string) {
	s.mu.Lock()
	d, byTag := repo.tags[what]
	if !byTag {
		d = what
	}
	doc, ok := repo.manifests[d]
	s.mu.Unlock()
	if !ok {
		m.refuse(http.StatusNotFound, "MANIFEST_UNKNOWN", what)
		return
	}
	m.Header().Set("Content-Type", doc.media)
	m.Header().Set("Docker-Content-Digest", d)
	m.serve(r, text(string(doc.bytes)), d)
}

func (s *Server) serveBlob(m *meter, r *http.Request, repo *repository, what string) {
	s.mu.Lock()
	b, ok := repo.blobs[what]
	s.mu.Unlock()
	if !ok {
		m.refuse(http.StatusNotFound, "BLOB_UNKNOWN", what)
		return
	}
	m.Header().Set("Content-Type", "application/octet-stream")
	m.Header().Set("Docker-Content-Digest", what)
	m.serve(r, b, what)
}

func (m *meter) json(v any) {
	m.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(m).Encode(v) // a client that disconnects is not an error
}

// refuse answers with an error in the protocol's format.
func (m *meter) refuse(status int, code, detail string) {
	m.Header().Set("Content-Type", "application/json")
	m.WriteHeader(status)
	m.json(map[string]any{"errors": []map[string]string{{"code": code, "message": "no stand-in is served here", "detail": detail}}})
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

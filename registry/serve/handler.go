package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
)

// Options are the options of a Handler.
type Options struct {
	Namespace string       // prefix of every repository, as in registry.Mapper
	Log       *slog.Logger // requests at level debug, damaged content at level error
	Key       *Key         // signs repositories of packages; nil: they are served unsigned
}

// Handler serves a bundle. It never writes. Paths of requests are looked up in the contents of
// the lock, and are never used as file system paths.
type Handler struct {
	src    registry.Source
	log    *slog.Logger
	names  *names
	paths  paths
	limits *limits
	parts  parts
}

// Contents counts what a Handler serves.
type Contents struct {
	Repositories int `json:"repositories"`
	Images       int `json:"images"`
	Files        int `json:"files"`
	Packages     int `json:"packages"` // files of repositories of packages
}

// New returns a Handler for the contents of a lock, which src provides.
func New(ctx context.Context, src registry.Source, lock *manifest.Lock, o Options) (*Handler, error) {
	n, err := newNames(src, lock.Images, o.Namespace)
	if err != nil {
		return nil, err
	}
	h := &Handler{src: src, log: o.Log, names: n, paths: newPaths(lock.Artifacts), limits: newLimits()}
	if o.Key != nil {
		if err := h.sign(ctx, o.Key); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Contents returns the numbers of served items.
func (h *Handler) Contents() Contents {
	c := Contents{Repositories: len(h.names.full)}
	for _, r := range h.names.full {
		c.Images += len(r.tags)
	}
	for p := range h.paths.blobs {
		if strings.HasPrefix(p, packagesRoot) {
			c.Packages++
		} else {
			c.Files++
		}
	}
	return c
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	seen := &recorder{ResponseWriter: w, status: http.StatusOK}
	h.route(seen, r)
	h.log.DebugContext(r.Context(), "request", "method", r.Method, "path", r.URL.Path, "status", seen.status, "bytes", seen.bytes,
		"took", time.Since(began).Round(time.Microsecond), "from", r.RemoteAddr)
}

// recorder records status and size of a response, for the log.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// api is the prefix of the registry API's paths.
const api = "/v2/"

func (h *Handler) route(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, codeUnsupported, "this registry serves a bundle and is read-only")
		return
	}
	path := r.URL.Path
	if path+"/" != api && !strings.HasPrefix(path, api) {
		h.file(w, r)
		return
	}
	w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	path = strings.TrimPrefix(path, api)
	switch {
	case path == "" || path+"/" == api:
		text(w, http.StatusOK, "application/json", []byte("{}"))
	case path == "_catalog":
		h.catalog(w, r)
	case strings.HasSuffix(path, "/tags/list"):
		if repo := h.repository(w, r, strings.TrimSuffix(path, "/tags/list")); repo != nil {
			h.tags(w, r, repo)
		}
	default:
		h.content(w, r, path)
	}
}

// content serves a manifest, a blob, or the referrers of a manifest.
func (h *Handler) content(w http.ResponseWriter, r *http.Request, path string) {
	// The reference contains no slash. The name of a repository may contain the words below.
	path, reference := cutLast(path)
	name, kind := cutLast(path)
	serve := map[string]func(http.ResponseWriter, *http.Request, *repository, string){
		"manifests": h.manifest, "blobs": h.blob, "referrers": h.referrers,
	}[kind]
	if serve == nil {
		refuse(w, http.StatusNotFound, codeUnsupported, "no such endpoint")
		return
	}
	if repo := h.repository(w, r, name); repo != nil {
		serve(w, r, repo, reference)
	}
}

// cutLast splits a path at its last slash.
func cutLast(path string) (before, after string) {
	i := strings.LastIndex(path, "/")
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// repositoryName is the pattern of names in the OCI distribution specification.
var repositoryName = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)

// maxName is the maximum length of a repository's name, as in clients.
const maxName = 255

// repository returns the repository of a request. If there is none, it writes an error response
// and returns nil.
func (h *Handler) repository(w http.ResponseWriter, r *http.Request, name string) *repository {
	if len(name) > maxName || !repositoryName.MatchString(name) {
		refuse(w, http.StatusBadRequest, codeNameInvalid, "invalid repository name")
		return nil
	}
	repo := h.names.find(name, r.URL.Query().Get("ns"))
	if repo == nil {
		refuse(w, http.StatusNotFound, codeNameUnknown, "the bundle does not contain repository "+name+h.severally(name))
	}
	return repo
}

// severally lists the repositories that an ambiguous short name may mean.
func (h *Handler) severally(name string) string {
	if len(h.names.short[name]) < 2 {
		return ""
	}
	var all []string
	for _, r := range h.names.short[name] {
		all = append(all, r.name)
	}
	return "; did you mean " + strings.Join(all, " or ") + "?"
}

// manifest serves a manifest or an index, by tag or digest.
func (h *Handler) manifest(w http.ResponseWriter, r *http.Request, repo *repository, reference string) {
	d, ok := repo.tags[reference]
	if !ok {
		d, ok = repo.manifests[digest.Digest(reference)]
	}
	if !ok {
		what := fmt.Sprintf("the bundle does not contain %s in %s", reference, repo.name)
		if name := repo.absent[digest.Digest(reference)]; name != "" {
			what = fmt.Sprintf("the bundle does not contain %s: it was built for other platforms", name)
		}
		refuse(w, http.StatusNotFound, codeManifestUnknown, what)
		return
	}
	h.send(w, r, piece{digest: d.Digest.String(), size: d.Size, media: d.MediaType})
}

// blob serves a config or a layer.
func (h *Handler) blob(w http.ResponseWriter, r *http.Request, repo *repository, reference string) {
	d := digest.Digest(reference)
	if d.Validate() != nil {
		refuse(w, http.StatusBadRequest, codeDigestInvalid, "not a digest")
		return
	}
	size, ok := repo.blobs[d]
	if m, is := repo.manifests[d]; is { // by the specification manifests are blobs as well
		size, ok = m.Size, true
	}
	if !ok {
		refuse(w, http.StatusNotFound, codeBlobUnknown, fmt.Sprintf("the bundle does not contain %s in %s", reference, repo.name))
		return
	}
	h.send(w, r, piece{digest: reference, size: size, media: "application/octet-stream"})
}

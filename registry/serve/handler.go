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

// Options says how a Handler works.
type Options struct {
	Namespace string       // put before every repository, as registry.Mapper does
	Log       *slog.Logger // each request at debug, damage as an error
	Key       *Key         // signs repositories of packages; nil: they are served unsigned
}

// Handler answers requests out of a bundle. It writes nothing, ever: what a path
// names is looked up among what the lock names, and no part of it reaches a file
// system.
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

// New lays out what a lock names and src holds.
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

// Contents counts what is served.
func (h *Handler) Contents() Contents {
	c := Contents{Repositories: len(h.names.whole)}
	for _, r := range h.names.whole {
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

// recorder notes what was answered.
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

// api is where the registry's own paths begin.
const api = "/v2/"

func (h *Handler) route(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, codeUnsupported, "this registry is read out of a bundle: nothing can be changed in it")
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

// content answers for one manifest, one blob, or what refers to one.
func (h *Handler) content(w http.ResponseWriter, r *http.Request, path string) {
	// What is asked for has no slash in it; a repository's name may hold any of these words.
	path, reference := cutLast(path)
	name, kind := cutLast(path)
	answer := map[string]func(http.ResponseWriter, *http.Request, *repository, string){
		"manifests": h.manifest, "blobs": h.blob, "referrers": h.referrers,
	}[kind]
	if answer == nil {
		refuse(w, http.StatusNotFound, codeUnsupported, "no such endpoint")
		return
	}
	if repo := h.repository(w, r, name); repo != nil {
		answer(w, r, repo, reference)
	}
}

// cutLast cuts a path at its last slash.
func cutLast(path string) (before, after string) {
	i := strings.LastIndex(path, "/")
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// repositoryName is the specification's form of a name.
var repositoryName = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)

// maxName bounds a repository's name, as clients do.
const maxName = 255

// repository finds the repository of a request, or answers that there is none.
func (h *Handler) repository(w http.ResponseWriter, r *http.Request, name string) *repository {
	if len(name) > maxName || !repositoryName.MatchString(name) {
		refuse(w, http.StatusBadRequest, codeNameInvalid, "no repository can have this name")
		return nil
	}
	repo := h.names.find(name, r.URL.Query().Get("ns"))
	if repo == nil {
		refuse(w, http.StatusNotFound, codeNameUnknown, "the bundle holds no repository "+name+h.severally(name))
	}
	return repo
}

// severally names the repositories among which a short name does not choose.
func (h *Handler) severally(name string) string {
	if len(h.names.short[name]) < 2 {
		return ""
	}
	var all []string
	for _, r := range h.names.short[name] {
		all = append(all, r.name)
	}
	return ": it is one of " + strings.Join(all, ", ")
}

// manifest answers for a manifest or an index, by tag or digest.
func (h *Handler) manifest(w http.ResponseWriter, r *http.Request, repo *repository, reference string) {
	d, ok := repo.tags[reference]
	if !ok {
		d, ok = repo.manifests[digest.Digest(reference)]
	}
	if !ok {
		what := fmt.Sprintf("the bundle holds no %s in %s", reference, repo.name)
		if name := repo.absent[digest.Digest(reference)]; name != "" {
			what = fmt.Sprintf("the bundle does not hold %s: it was built for other platforms", name)
		}
		refuse(w, http.StatusNotFound, codeManifestUnknown, what)
		return
	}
	h.send(w, r, piece{digest: d.Digest.String(), size: d.Size, media: d.MediaType})
}

// blob answers for a config or a layer.
func (h *Handler) blob(w http.ResponseWriter, r *http.Request, repo *repository, reference string) {
	d := digest.Digest(reference)
	if d.Validate() != nil {
		refuse(w, http.StatusBadRequest, codeDigestInvalid, "not a digest")
		return
	}
	size, ok := repo.blobs[d]
	if m, is := repo.manifests[d]; is { // the specification has these as blobs, too
		size, ok = m.Size, true
	}
	if !ok {
		refuse(w, http.StatusNotFound, codeBlobUnknown, fmt.Sprintf("the bundle holds no %s in %s", reference, repo.name))
		return
	}
	h.send(w, r, piece{digest: reference, size: size, media: "application/octet-stream"})
}

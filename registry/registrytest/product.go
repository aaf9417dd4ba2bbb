package registrytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
)

// Product is a registry that behaves like real products: content exists only in the
// repositories that it was pushed to, and references of manifests are checked. Lock it to
// change its fields between requests.
type Product struct {
	sync.Mutex

	// Mount is the response to a mount request: 0 mounts, 202 starts an upload, any other
	// value is the status of an error.
	Mount int
	// Sparse is the response to an index with missing children: 0 accepts it, any other value
	// is the status of an error with Code.
	Sparse int
	Code   string
	// User and Password are required if they are set.
	User, Password string
	// Readers are users with pull access only, with their passwords.
	Readers map[string]string
	// Busy answers every n-th upload with 429 if it is set.
	Busy int
	// Project is the required prefix of repository names.
	Project string
	// Tokens makes the registry accept bearer tokens only. It never issues one.
	Tokens bool

	OpenUploads int // uploads that are neither finished nor cancelled
	Uploads     int // pushed blobs
	Mounts      int
	Puts        int // pushed manifests
	Requests    int // requests

	blobs     map[string][]byte // repository and digest
	manifests map[string]sent   // repository and digest or tag
}

type sent struct {
	media string
	text  []byte
}

// NewProduct returns an empty registry that accepts everything.
func NewProduct() *Product {
	return &Product{blobs: map[string][]byte{}, manifests: map[string]sent{}}
}

// Manifest returns the digest of a tag in a repository, or "".
func (p *Product) Manifest(repository, tag string) string {
	p.Lock()
	defer p.Unlock()
	m, ok := p.manifests[repository+" "+tag]
	if !ok {
		return ""
	}
	return digest.FromBytes(m.text).String()
}

// Forget deletes a blob or a manifest from a repository.
func (p *Product) Forget(repository, digest string) {
	p.Lock()
	defer p.Unlock()
	delete(p.blobs, repository+" "+digest)
	delete(p.manifests, repository+" "+digest)
}

// ServeHTTP implements http.Handler.
func (p *Product) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client disconnected
	}
	p.Lock()
	defer p.Unlock()
	p.Requests++
	if p.Tokens {
		w.Header().Set("WWW-Authenticate", `Bearer realm="https://tokens.invalid/",service="product"`)
		fault(w, http.StatusUnauthorized, "UNAUTHORIZED", "bring a token")
		return
	}
	user, password, _ := r.BasicAuth()
	known, reads := p.Readers[user]
	if reads = reads && known == password; !reads && (user != p.User || password != p.Password) {
		w.Header().Set("WWW-Authenticate", `Basic realm="product"`)
		fault(w, http.StatusUnauthorized, "UNAUTHORIZED", "log in")
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	if path == "" {
		w.WriteHeader(http.StatusOK)
		return
	}
	if reads && r.Method != http.MethodGet && r.Method != http.MethodHead {
		fault(w, http.StatusForbidden, "DENIED", user+" may only pull")
		return
	}
	if !strings.HasPrefix(path, p.Project) {
		fault(w, http.StatusNotFound, "NAME_UNKNOWN", "no such project")
		return
	}
	if name, id, ok := strings.Cut(path, "/manifests/"); ok {
		p.manifest(w, r, name, id, body)
		return
	}
	if name, id, ok := strings.Cut(path, "/blobs/"); ok {
		p.blob(w, r, name, id, body)
		return
	}
	fault(w, http.StatusNotFound, "UNSUPPORTED", "no such endpoint")
}

func (p *Product) blob(w http.ResponseWriter, r *http.Request, name, id string, body []byte) {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && q.Get("mount") != "" && p.Mount != http.StatusAccepted:
		b, ok := p.blobs[q.Get("from")+" "+q.Get("mount")]
		if p.Mount != 0 {
			fault(w, p.Mount, "UNSUPPORTED", "no mounts")
			return
		}
		if ok {
			p.Mounts++
			p.blobs[name+" "+q.Get("mount")] = b
			w.Header().Set("Location", "/v2/"+name+"/blobs/"+q.Get("mount"))
			w.WriteHeader(http.StatusCreated)
			return
		}
		fallthrough
	case r.Method == http.MethodPost:
		p.OpenUploads++
		w.Header().Set("Location", "/v2/"+name+"/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodDelete && strings.HasPrefix(id, "uploads/"):
		p.OpenUploads--
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut:
		p.OpenUploads--
		if p.Uploads++; p.Busy > 0 && p.Uploads%p.Busy == 0 {
			fault(w, http.StatusTooManyRequests, "TOOMANYREQUESTS", "not now")
			return
		}
		if digest.FromBytes(body).String() != q.Get("digest") {
			fault(w, http.StatusBadRequest, "DIGEST_INVALID", "other content")
			return
		}
		p.blobs[name+" "+q.Get("digest")] = body
		w.WriteHeader(http.StatusCreated)
	default:
		b, ok := p.blobs[name+" "+id]
		if !ok {
			fault(w, http.StatusNotFound, "BLOB_UNKNOWN", id)
			return
		}
		w.Header().Set("Docker-Content-Digest", id)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	}
}

func (p *Product) manifest(w http.ResponseWriter, r *http.Request, name, id string, body []byte) {
	if r.Method == http.MethodPut {
		p.Puts++
		if status, code, what := p.lacks(name, body); what != "" {
			fault(w, status, code, what)
			return
		}
		d := digest.FromBytes(body).String()
		m := sent{r.Header.Get("Content-Type"), slices.Clone(body)}
		p.manifests[name+" "+d], p.manifests[name+" "+id] = m, m
		w.Header().Set("Docker-Content-Digest", d)
		w.WriteHeader(http.StatusCreated)
		return
	}
	m, ok := p.manifests[name+" "+id]
	if !ok {
		fault(w, http.StatusNotFound, "MANIFEST_UNKNOWN", id)
		return
	}
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(m.text).String())
	w.Header().Set("Content-Type", m.media)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(m.text))
}

// lacks returns an error response if a manifest refers to content that its repository lacks.
func (p *Product) lacks(name string, text []byte) (status int, code, what string) {
	type ref struct {
		Digest string `json:"digest"`
	}
	var m struct {
		Config            ref
		Layers, Manifests []ref
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return http.StatusBadRequest, "MANIFEST_INVALID", err.Error()
	}
	if m.Manifests == nil {
		for _, x := range append(m.Layers, m.Config) {
			if _, ok := p.blobs[name+" "+x.Digest]; !ok {
				return http.StatusBadRequest, "MANIFEST_BLOB_UNKNOWN", x.Digest
			}
		}
	}
	for _, x := range m.Manifests {
		if _, ok := p.manifests[name+" "+x.Digest]; !ok && p.Sparse != 0 {
			return p.Sparse, p.Code, x.Digest
		}
	}
	return 0, "", ""
}

func fault(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
}

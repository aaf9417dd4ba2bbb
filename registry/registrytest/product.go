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

// Product is a registry that, as products do, knows content only in the
// repositories that it was sent to, and checks what a manifest refers to. Its
// fields may be changed between requests, under Lock.
type Product struct {
	sync.Mutex

	// Mount is how it answers to a mount: 0 mounts, 202 begins an upload, and
	// anything else is an error of that status.
	Mount int
	// Sparse is how it answers to an index whose children are not all there: 0
	// takes it, and anything else is an error of that status with Code.
	Sparse int
	Code   string
	// User and Password are asked for where they are set.
	User, Password string
	// Readers are further users, with their passwords, who may pull alone.
	Readers map[string]string
	// Busy answers 429 to every n-th upload where it is set.
	Busy int
	// Project is what names of repositories have to begin with.
	Project string
	// Tokens has it take a user's password in exchange for a token alone, which it
	// never gives.
	Tokens bool

	Begun   int // uploads that are neither done nor given up
	Uploads int // blobs that were sent
	Mounts  int
	Puts    int // manifests that were sent
	Asked   int // requests

	blobs     map[string][]byte // repository and digest
	manifests map[string]sent   // repository and digest or tag
}

type sent struct {
	media string
	text  []byte
}

// NewProduct is an empty one that takes everything.
func NewProduct() *Product {
	return &Product{blobs: map[string][]byte{}, manifests: map[string]sent{}}
}

// Manifest gives the digest of what a repository has under a tag, or "".
func (p *Product) Manifest(repository, tag string) string {
	p.Lock()
	defer p.Unlock()
	m, ok := p.manifests[repository+" "+tag]
	if !ok {
		return ""
	}
	return digest.FromBytes(m.text).String()
}

// Forget drops a blob or a manifest from a repository.
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
		return // it broke off
	}
	p.Lock()
	defer p.Unlock()
	p.Asked++
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
		fault(w, http.StatusForbidden, "DENIED", user+" may pull alone")
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
		p.Begun++
		w.Header().Set("Location", "/v2/"+name+"/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodDelete && strings.HasPrefix(id, "uploads/"):
		p.Begun--
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut:
		p.Begun--
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

// lacks says what a manifest refers to that its repository has not.
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

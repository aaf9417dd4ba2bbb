package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
)

// memoryRegistry is a registry in memory that takes whatever it is sent, also a tag whose
// content it lacks: whether tags come last is the client's doing alone. It notes each
// tag that did not.
type memoryRegistry struct {
	carried func(digest string) bool // whether the bundle has it: an index may name what it does not carry

	mu      sync.Mutex
	held    map[string]document // by repository@digest; a blob has no type
	tags    map[string]string   // by repository:tag
	uploads map[string][]byte   // by their id
	opened  int
	early   []string // what was tagged before it was whole
}

func newMemoryRegistry(carried func(string) bool) *memoryRegistry {
	return &memoryRegistry{carried: carried, held: map[string]document{}, tags: map[string]string{}, uploads: map[string][]byte{}}
}

// half gives a registry that has every other blob and manifest of this one, and no tags.
func (d *memoryRegistry) half() *memoryRegistry {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := newMemoryRegistry(d.carried)
	for i, at := range slices.Sorted(maps.Keys(d.held)) {
		if i%2 == 0 {
			out.held[at] = d.held[at]
		}
	}
	return out
}

func digestOf(b []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(b)) }

// ServeHTTP speaks as much of the distribution API as a push needs.
func (d *memoryRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	for _, kind := range []string{"/blobs/uploads/", "/blobs/", "/manifests/", "/referrers/"} {
		repo, rest, ok := strings.Cut(path, kind)
		if !ok {
			continue
		}
		switch kind {
		case "/blobs/uploads/":
			d.upload(w, r, repo, rest)
		case "/blobs/":
			d.give(w, r, repo, rest)
		case "/manifests/":
			if r.Method == http.MethodPut {
				d.put(w, r, repo, rest)
				return
			}
			d.give(w, r, repo, d.tagged(repo, rest))
		default:
			d.referrers(w, repo, rest)
		}
		return
	}
	if path != "" {
		w.WriteHeader(http.StatusNotFound)
	}
}

// tagged gives the digest of a tag, and of a digest itself.
func (d *memoryRegistry) tagged(repo, ref string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.tags[repo+":"+ref]; ok {
		return at
	}
	return ref
}

func (d *memoryRegistry) upload(w http.ResponseWriter, r *http.Request, repo, id string) {
	if r.Method == http.MethodPost {
		d.open(w, r, repo)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil { // cut off: what came of it is not kept
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	before, ok := d.uploads[id]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	body = append(slices.Clone(before), body...)
	if r.Method == http.MethodPatch {
		d.uploads[id] = body
		w.Header().Set("Location", r.URL.Path)
		w.Header().Set("Range", fmt.Sprintf("0-%d", len(body)-1))
		w.WriteHeader(http.StatusAccepted)
		return
	}
	delete(d.uploads, id)
	want := r.URL.Query().Get("digest")
	if digestOf(body) != want {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	d.held[repo+"@"+want] = document{body: body}
	w.Header().Set("Docker-Content-Digest", want)
	w.WriteHeader(http.StatusCreated)
}

// open begins an upload, or mounts what another repository has.
func (d *memoryRegistry) open(w http.ResponseWriter, r *http.Request, repo string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := r.URL.Query()
	if blob, ok := d.held[q.Get("from")+"@"+q.Get("mount")]; ok {
		d.held[repo+"@"+q.Get("mount")] = blob
		w.WriteHeader(http.StatusCreated)
		return
	}
	d.opened++
	id := strconv.Itoa(d.opened)
	d.uploads[id] = nil
	w.Header().Set("Location", "/v2/"+repo+"/blobs/uploads/"+id)
	w.WriteHeader(http.StatusAccepted)
}

func (d *memoryRegistry) give(w http.ResponseWriter, r *http.Request, repo, digest string) {
	d.mu.Lock()
	x, ok := d.held[repo+"@"+digest]
	d.mu.Unlock()
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", x.typ)
	if x.typ == "" {
		w.Header().Set("Content-Type", "application/octet-stream")
	}
	w.Header().Set("Docker-Content-Digest", digest)
	w.Header().Set("Content-Length", strconv.Itoa(len(x.body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(x.body) // who asked may be gone
	}
}

// put keeps a manifest, and notes a tag that it gets before its content is there.
func (d *memoryRegistry) put(w http.ResponseWriter, r *http.Request, repo, ref string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	digest := digestOf(body)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held[repo+"@"+digest] = document{r.Header.Get("Content-Type"), body}
	if ref != digest {
		if err := d.whole(repo, digest); err != nil {
			d.early = append(d.early, fmt.Sprintf("%s:%s: %s", repo, ref, err))
		}
		d.tags[repo+":"+ref] = digest
	}
	w.Header().Set("Docker-Content-Digest", digest)
	if s := subjectOf(body); s != "" {
		w.Header().Set("OCI-Subject", s)
	}
	w.WriteHeader(http.StatusCreated)
}

func subjectOf(manifest []byte) string {
	var m v1.Manifest
	if json.Unmarshal(manifest, &m) != nil || m.Subject == nil {
		return ""
	}
	return m.Subject.Digest.String()
}

func (d *memoryRegistry) referrers(w http.ResponseWriter, repo, subject string) {
	index := v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{}}
	index.SchemaVersion = 2
	d.mu.Lock()
	for _, at := range slices.Sorted(maps.Keys(d.held)) {
		x := d.held[at]
		if strings.HasPrefix(at, repo+"@") && x.typ != "" && subjectOf(x.body) == subject {
			index.Manifests = append(index.Manifests, v1.Descriptor{MediaType: x.typ, Digest: digest.FromBytes(x.body), Size: int64(len(x.body))})
		}
	}
	d.mu.Unlock()
	w.Header().Set("Content-Type", v1.MediaTypeImageIndex)
	_ = json.NewEncoder(w).Encode(index) // who asked may be gone
}

// whole follows a manifest to everything below it in the same repository. What the
// bundle does not carry itself may be absent. It wants the lock.
func (d *memoryRegistry) whole(repo, digest string) error {
	x, ok := d.held[repo+"@"+digest]
	switch {
	case !ok && d.carried(digest):
		return fmt.Errorf("%s is not there", digest)
	case !ok:
		return nil
	case digestOf(x.body) != digest:
		return fmt.Errorf("%s has other bytes", digest)
	case !bundle.IsManifest(x.typ):
		return nil
	}
	var m children
	if err := json.Unmarshal(x.body, &m); err != nil {
		return fmt.Errorf("%s: %w", digest, err)
	}
	for _, c := range m.all() {
		if err := d.whole(repo, c.Digest.String()); err != nil {
			return err
		}
	}
	return nil
}

// sound says which tags were there before their content, and which lack some now.
func (d *memoryRegistry) sound() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var wrong []error
	for _, e := range d.early {
		wrong = append(wrong, errors.New("TAGGED BEFORE IT WAS WHOLE: "+e))
	}
	for _, at := range slices.Sorted(maps.Keys(d.tags)) {
		repo, _, _ := strings.Cut(at, ":")
		if err := d.whole(repo, d.tags[at]); err != nil {
			wrong = append(wrong, fmt.Errorf("TAGGED AND NOT WHOLE: %s: %w", at, err))
		}
	}
	return errors.Join(wrong...)
}

// lacks compares with a registry that a push filled which nothing disturbed: tags, and
// all that is below them and refers to them.
func (d *memoryRegistry) lacks(all *memoryRegistry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, digest := range all.tags {
		if d.tags[at] != digest {
			return fmt.Errorf("MISSING: tag %s is %q, want %s", at, d.tags[at], digest)
		}
	}
	for at := range all.held {
		if _, ok := d.held[at]; !ok {
			return fmt.Errorf("MISSING: %s", at)
		}
	}
	return nil
}

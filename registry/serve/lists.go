package serve

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// text writes a response with a generated document.
func text(w http.ResponseWriter, status int, media string, body []byte) {
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client has disconnected
}

func object(w http.ResponseWriter, status int, media string, v any) {
	body, err := json.Marshal(v)
	if err != nil { // impossible: v has only texts
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	text(w, status, media, body)
}

// tags lists the tags of a repository.
func (h *Handler) tags(w http.ResponseWriter, r *http.Request, repo *repository) {
	if list, ok := page(w, r, slices.Sorted(maps.Keys(repo.tags))); ok {
		object(w, http.StatusOK, "application/json", map[string]any{"name": repo.name, "tags": list})
	}
}

// catalog lists the repositories.
func (h *Handler) catalog(w http.ResponseWriter, r *http.Request) {
	if list, ok := page(w, r, slices.Sorted(maps.Keys(h.names.full))); ok {
		object(w, http.StatusOK, "application/json", map[string]any{"repositories": list})
	}
}

// page returns the entries of a sorted list that the parameters n and last select, and adds a
// link to the next page.
func page(w http.ResponseWriter, r *http.Request, all []string) ([]string, bool) {
	query := r.URL.Query()
	if query.Has("last") {
		i, found := slices.BinarySearch(all, query.Get("last"))
		if found {
			i++
		}
		all = all[i:]
	}
	list := append([]string{}, all...) // never null
	if !query.Has("n") {
		return list, true
	}
	n, err := strconv.Atoi(query.Get("n"))
	if err != nil || n < 0 {
		refuse(w, http.StatusBadRequest, codeUnsupported, "n must be the number of results")
		return nil, false
	}
	if n >= len(list) {
		return list, true
	}
	list = list[:n]
	if n > 0 {
		next := url.URL{Path: r.URL.Path, RawQuery: url.Values{"n": {strconv.Itoa(n)}, "last": {list[n-1]}}.Encode()}
		w.Header().Set("Link", fmt.Sprintf("<%s>; rel=\"next\"", next.String()))
	}
	return list, true
}

// referrers lists the manifests that refer to a manifest. The manifest need not exist.
func (h *Handler) referrers(w http.ResponseWriter, r *http.Request, repo *repository, reference string) {
	d := digest.Digest(reference)
	if d.Validate() != nil {
		refuse(w, http.StatusBadRequest, codeDigestInvalid, "not a digest")
		return
	}
	list := append([]v1.Descriptor{}, repo.referrers[d]...)
	if kind := r.URL.Query().Get("artifactType"); kind != "" {
		list = slices.DeleteFunc(list, func(x v1.Descriptor) bool { return x.ArtifactType != kind })
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	object(w, http.StatusOK, v1.MediaTypeImageIndex, v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: list,
	})
}

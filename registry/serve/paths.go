package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
)

// The paths outside the registry API.
const (
	filesRoot    = "/files/"    // COMPONENT/VERSION/OS-ARCH/NAME, as in kubexm bundle extract
	packagesRoot = "/packages/" // DISTRIBUTION-RELEASE/ARCH/…, a repository of packages
)

// paths are the contents that are served as plain files.
type paths struct {
	blobs map[string]manifest.Blob
	made  map[string][]byte // generated signatures, which are not in the bundle
	list  []string          // paths of both, sorted
}

func newPaths(artifacts []manifest.Artifact) paths {
	p := paths{blobs: map[string]manifest.Blob{}}
	for _, a := range artifacts {
		for _, b := range a.Blobs() {
			name := filesRoot + bundle.FilePath(a, b)
			if a.Kind == manifest.Packages {
				name = packagesRoot + path.Join(a.Name, a.Platform.Arch, b.Name)
			}
			p.blobs[name] = b
		}
	}
	p.list = slices.Sorted(maps.Keys(p.blobs))
	return p
}

// file serves a file, or the list of files below a folder.
func (h *Handler) file(w http.ResponseWriter, r *http.Request) {
	name := strings.ReplaceAll(r.URL.Path, "/./", "/") // apt requests such paths for a repository "ADDRESS ./"
	if b, ok := h.paths.blobs[name]; ok {
		h.send(w, r, piece{digest: "sha256:" + b.SHA256, size: b.Size, media: "application/octet-stream"})
		return
	}
	if made, ok := h.paths.made[name]; ok {
		text(w, http.StatusOK, plainText, made)
		return
	}
	if list, ok := h.paths.below(name); ok {
		text(w, http.StatusOK, plainText, []byte(list))
		return
	}
	text(w, http.StatusNotFound, plainText, []byte("not in the bundle; "+filesRoot+" and "+packagesRoot+" list its files\n"))
}

const plainText = "text/plain; charset=utf-8"

// below lists the paths below a folder, one per line, with sizes and digests.
func (p paths) below(folder string) (string, bool) {
	if !strings.HasSuffix(folder, "/") {
		return "", false
	}
	var list strings.Builder
	at, _ := slices.BinarySearch(p.list, folder)
	for _, name := range p.list[at:] {
		if !strings.HasPrefix(name, folder) {
			break
		}
		b, ok := p.blobs[name]
		if made := p.made[name]; !ok {
			sum := sha256.Sum256(made)
			b = manifest.Blob{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(made))}
		}
		fmt.Fprintf(&list, "%s  %d  %s\n", b.SHA256, b.Size, name)
	}
	top := folder == "/" || folder == filesRoot || folder == packagesRoot
	return list.String(), top || list.Len() > 0
}

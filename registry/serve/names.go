package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
)

// repository is the content of one repository.
type repository struct {
	name      string                            // name by registry.Mapper
	tags      map[string]v1.Descriptor          // of manifests and indexes
	manifests map[digest.Digest]v1.Descriptor   // all manifests and indexes
	blobs     map[digest.Digest]int64           // configs and layers, with their sizes
	absent    map[digest.Digest]string          // all manifests in indexes, described for people
	referrers map[digest.Digest][]v1.Descriptor // manifests by their subject
}

// names are the repositories by name.
type names struct {
	mapper registry.Mapper
	full   map[string]*repository   // by the name at the site
	plain  map[string]*repository   // by the name without the site's namespace
	short  map[string][]*repository // by upstream's path without its registry
}

// newNames returns the repositories of a lock's images.
func newNames(src registry.Source, images []manifest.ImagePin, namespace string) (*names, error) {
	n := &names{mapper: registry.Mapper{Namespace: namespace}, full: map[string]*repository{}, plain: map[string]*repository{}, short: map[string][]*repository{}}
	for _, im := range images {
		if err := n.add(src, im); err != nil {
			return nil, fmt.Errorf("%s: %w", im.Reference, err)
		}
	}
	for _, r := range n.all() {
		for _, list := range r.referrers {
			slices.SortFunc(list, func(a, b v1.Descriptor) int { return strings.Compare(a.Digest.String(), b.Digest.String()) })
		}
	}
	return n, nil
}

func (n *names) add(src registry.Source, im manifest.ImagePin) error {
	name, tag, err := n.mapper.Repository(im.Reference)
	if err != nil {
		return err
	}
	named, err := reference.ParseNormalizedNamed(im.Reference)
	if err != nil {
		return err
	}
	r := n.full[name]
	if r == nil {
		r = &repository{
			name: name, tags: map[string]v1.Descriptor{}, manifests: map[digest.Digest]v1.Descriptor{}, blobs: map[digest.Digest]int64{},
			absent: map[digest.Digest]string{}, referrers: map[digest.Digest][]v1.Descriptor{},
		}
		n.full[name] = r
		n.plain[path.Join(registry.Prefix(reference.Domain(named)), reference.Path(named))] = r
		n.short[reference.Path(named)] = append(n.short[reference.Path(named)], r)
	}
	tree, err := src.Tree(im)
	if err != nil {
		return err
	}
	for _, d := range tree {
		if !bundle.IsManifest(d.MediaType) {
			r.blobs[d.Digest] = d.Size
			continue
		}
		if err := r.manifest(src, im, d); err != nil {
			return err
		}
	}
	if top, ok := r.manifests[digest.Digest(im.Digest)]; ok && tag != "" {
		r.tags[tag] = top
	}
	return nil
}

// maxManifest is the maximum size of a manifest or an index in bytes.
const maxManifest = 16 << 20

// manifest adds one document, its subject, and the platforms that it lists.
func (r *repository) manifest(src registry.Source, im manifest.ImagePin, d v1.Descriptor) error {
	if _, twice := r.manifests[d.Digest]; twice {
		return nil
	}
	text, err := readManifest(src, d)
	if err != nil {
		return err
	}
	var m struct {
		ArtifactType string            `json:"artifactType"`
		Annotations  map[string]string `json:"annotations"`
		Subject      *v1.Descriptor    `json:"subject"`
		Config       v1.Descriptor     `json:"config"`
		Manifests    []v1.Descriptor   `json:"manifests"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", d.Digest, err)
	}
	plain := v1.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
	r.manifests[d.Digest] = plain
	if m.Subject != nil {
		if plain.ArtifactType = m.ArtifactType; plain.ArtifactType == "" {
			plain.ArtifactType = m.Config.MediaType
		}
		plain.Annotations = m.Annotations
		r.referrers[m.Subject.Digest] = append(r.referrers[m.Subject.Digest], plain)
	}
	if bundle.IsIndex(d.MediaType) {
		for _, c := range m.Manifests { // those in the bundle were added before
			r.absent[c.Digest] = fmt.Sprintf("%s of %s", platformOf(c), im.Reference)
		}
	}
	return nil
}

func platformOf(d v1.Descriptor) string {
	if d.Platform == nil {
		return "a part"
	}
	return path.Join(d.Platform.OS, d.Platform.Architecture, d.Platform.Variant)
}

// readManifest reads a complete document and verifies it.
func readManifest(src registry.Source, d v1.Descriptor) ([]byte, error) {
	rc, size, err := src.Blob(d.Digest.String())
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	if size > maxManifest {
		return nil, fmt.Errorf("manifest %s has %d bytes", d.Digest, size)
	}
	return io.ReadAll(rc)
}

// all returns all repositories, sorted by name.
func (n *names) all() []*repository {
	var out []*repository
	for _, name := range slices.Sorted(maps.Keys(n.full)) {
		out = append(out, n.full[name])
	}
	return out
}

// find returns the repository of a name in a request. upstream is the mirrored registry in the
// request, as containerd sends it (?ns=docker.io). A path without a registry is found if only
// one registry has it.
func (n *names) find(name, upstream string) *repository {
	for _, by := range []map[string]*repository{n.full, n.plain} {
		if r := by[name]; r != nil {
			return r
		}
	}
	if upstream != "" {
		return n.full[path.Join(n.mapper.Namespace, registry.Prefix(upstream), name)]
	}
	if found := n.short[name]; len(found) == 1 {
		return found[0]
	}
	return nil
}

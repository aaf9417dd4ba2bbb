package registry

import (
	"fmt"
	"path"
	"strings"

	"github.com/distribution/reference"
)

// Mapper gives images their names at a site. The upstream registry's name
// becomes the first part of the repository, so that equal paths of two
// registries stay apart: registry.k8s.io/pause is HOST/registry.k8s.io/pause.
type Mapper struct {
	Host      string // of the site's registry, with a port if it has one
	Namespace string // put before every repository; may be empty

	// Digests are those of indexes that the registry did not take as published
	// (Seeded.Narrowed): what it has instead, by Place. May be nil.
	Digests map[string]string
}

// Place is the key of Mapper.Digests: a published digest in one repository of the
// site, since another may have taken the same index as it was.
func Place(repository, digest string) string { return repository + "@" + digest }

// Repository gives the repository of an upstream reference within the site's
// registry, and the tag, which is empty for a reference by digest alone.
func (m Mapper) Repository(ref string) (repository, tag string, err error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", "", fmt.Errorf("image reference %q: %w", ref, err)
	}
	if t, ok := reference.TagNameOnly(named).(reference.Tagged); ok {
		tag = t.Tag()
	}
	if _, digested := named.(reference.Digested); digested {
		tag = ""
		if t, ok := named.(reference.Tagged); ok {
			tag = t.Tag()
		}
	}
	return path.Join(m.Namespace, Prefix(reference.Domain(named)), reference.Path(named)), tag, nil
}

// Map gives the whole name at the site, with tag or digest as ref has them. A
// digest that the site has another one for becomes that.
func (m Mapper) Map(ref string) (string, error) {
	repository, tag, err := m.Repository(ref)
	if err != nil {
		return "", err
	}
	name := m.Host + "/" + repository
	if tag != "" {
		name += ":" + tag
	}
	if _, digest, ok := strings.Cut(ref, "@"); ok {
		if own := m.Digests[Place(repository, digest)]; own != "" {
			digest = own
		}
		name += "@" + digest
	}
	return name, nil
}

// Prefix is the part of a repository's name that stands for an upstream
// registry. A port's colon is not allowed there and becomes a dash.
func Prefix(upstream string) string { return strings.ReplaceAll(upstream, ":", "-") }

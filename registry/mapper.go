package registry

import (
	"fmt"
	"path"
	"strings"

	"github.com/distribution/reference"
)

// Mapper maps upstream image names to names at a site. The name of the upstream registry
// becomes the first part of the repository, so that equal paths of two registries do not
// collide: registry.k8s.io/pause is HOST/registry.k8s.io/pause.
type Mapper struct {
	Host      string // of the site's registry, with an optional port
	Namespace string // prefix of every repository; may be empty

	// Digests are the digests of indexes that the registry did not accept as published
	// (FillResult.Narrowed), by DigestKey. May be nil.
	Digests map[string]string
}

// DigestKey returns the key of Mapper.Digests: a published digest in one repository of the site.
// Another repository may have accepted the same index as published.
func DigestKey(repository, digest string) string { return repository + "@" + digest }

// Repository returns the repository of an upstream reference within the site's registry, and
// the tag. The tag is "" for a reference by digest.
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

// Map returns the complete name at the site, with the tag or digest of ref. A digest in
// m.Digests is replaced by the site's digest.
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
		if own := m.Digests[DigestKey(repository, digest)]; own != "" {
			digest = own
		}
		name += "@" + digest
	}
	return name, nil
}

// Prefix returns the part of a repository's name that represents an upstream registry. The
// colon before a port is not allowed in repository names and becomes a dash.
func Prefix(upstream string) string { return strings.ReplaceAll(upstream, ":", "-") }

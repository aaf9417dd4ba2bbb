package registry

import (
	"regexp"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// byDigest matches an image's name with a digest in a text.
var byDigest = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9._:/-]*@sha256:[0-9a-f]{64}`)

// Redigest replaces the digests of images in a text by the site's digests in m.Digests. Names
// stay upstream's: the container runtime of the nodes redirects them to the site's registry.
// The text may be a manifest or one reference.
func (m Mapper) Redigest(text []byte) []byte {
	if len(m.Digests) == 0 {
		return text
	}
	return byDigest.ReplaceAllFunc(text, func(ref []byte) []byte {
		name, digest, _ := strings.Cut(string(ref), "@")
		repository, _, err := m.Repository(string(ref))
		if own := m.Digests[DigestKey(repository, digest)]; err == nil && own != "" {
			return []byte(name + "@" + own)
		}
		return ref
	})
}

// DigestReplacements returns the replacements of Redigest for images: for each published
// digest the site's digest, both in hex.
func (m Mapper) DigestReplacements(images []manifest.ImagePin) map[string]string {
	var out map[string]string
	for _, im := range images {
		repository, _, err := m.Repository(im.Reference)
		own := m.Digests[DigestKey(repository, im.Digest)]
		if err != nil || own == "" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[hexOf(im.Digest)] = hexOf(own)
	}
	return out
}

func hexOf(digest string) string { return strings.TrimPrefix(digest, "sha256:") }

// Redigested returns the value of m.Digests for images in a registry.
func (m Mapper) Redigested(images []ImageStatus) (map[string]string, error) {
	var out map[string]string
	for _, at := range images {
		if !at.Narrowed() {
			continue
		}
		repository, _, err := m.Repository(at.Reference)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = map[string]string{}
		}
		out[DigestKey(repository, at.Published)] = at.Digest
	}
	return out, nil
}

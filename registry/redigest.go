package registry

import (
	"regexp"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// byDigest is an image's name with a digest, wherever it stands in a text.
var byDigest = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9._:/-]*@sha256:[0-9a-f]{64}`)

// Redigest gives each image that a text names by a digest which the site has
// another one for that digest. Names stay upstream's: nodes are sent to the site's
// registry by their runtime. The text may be a manifest or one reference.
func (m Mapper) Redigest(text []byte) []byte {
	if len(m.Digests) == 0 {
		return text
	}
	return byDigest.ReplaceAllFunc(text, func(ref []byte) []byte {
		name, digest, _ := strings.Cut(string(ref), "@")
		repository, _, err := m.Repository(string(ref))
		if own := m.Digests[Place(repository, digest)]; err == nil && own != "" {
			return []byte(name + "@" + own)
		}
		return ref
	})
}

// Words gives what Redigest does to whatever names one of images, whichever way:
// for each digest, in hex, the one that the site has.
func (m Mapper) Words(images []manifest.ImagePin) map[string]string {
	var out map[string]string
	for _, im := range images {
		repository, _, err := m.Repository(im.Reference)
		own := m.Digests[Place(repository, im.Digest)]
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

// Redigested gives what m.Digests is for images as they stand in a registry.
func (m Mapper) Redigested(images []Standing) (map[string]string, error) {
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
		out[Place(repository, at.Published)] = at.Digest
	}
	return out, nil
}

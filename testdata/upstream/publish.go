package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/distribution/reference"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Helm's media types of a chart in a registry.
const (
	chartConfig  = "application/vnd.cncf.helm.config.v1+json"
	chartContent = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Publish serves body at an address that no lock names, such as a repository's
// index. What WriteFiles writes sends kubexm to its host, and pins nothing of it.
func (s *Server) Publish(address string, body []byte) error {
	at, err := where(address)
	if err != nil {
		return err
	}
	content := bytes.NewReader(body)
	sha, err := sha256Of(content)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[at] = file{body: content, sha256: sha, typ: "application/octet-stream"}
	return nil
}

// PublishChart serves the archive of a chart from the registry, under a reference
// with a tag, in the form that `helm push` gives it. Meta is what its Chart.yaml says.
func (s *Server) PublishChart(ref string, archive []byte, meta any) error {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return fmt.Errorf("chart %q: %w", ref, err)
	}
	tagged, ok := named.(reference.NamedTagged)
	if !ok {
		return fmt.Errorf("chart %q: name a tag", ref)
	}
	about, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("chart %q: %w", ref, err)
	}
	img := &image{manifests: map[string]document{}, blobs: map[string]Content{}}
	d, err := img.addDocument(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config:    img.addBlob(chartConfig, about),
		Layers:    []v1.Descriptor{img.addBlob(chartContent, archive)},
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tag(tagged, img, d.Digest.String())
	return nil
}

// tag adds an image to its repository. The caller holds s.mu.
func (s *Server) tag(ref reference.NamedTagged, img *image, digest string) {
	name := reference.Domain(ref) + "/" + reference.Path(ref)
	repo := s.repos[name]
	if repo == nil {
		repo = &repository{tags: map[string]string{}, manifests: map[string]document{}, blobs: map[string]Content{}}
		s.repos[name] = repo
	}
	for d, m := range img.manifests {
		repo.manifests[d] = m
	}
	for d, b := range img.blobs {
		repo.blobs[d] = b
	}
	repo.tags[ref.Tag()] = digest
}

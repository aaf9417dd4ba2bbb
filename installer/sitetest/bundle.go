package sitetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// Bundle is a bundle with every file that a plan needs, and an image for each name.
type Bundle struct {
	steptest.Artifacts
	blobs map[string][]byte
	trees map[string][]v1.Descriptor
	pins  []manifest.ImagePin
}

func newBundle(t TB, g *plan.Graph, root string) *Bundle {
	t.Helper()
	upstream := func(file string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(root, "steps", "network", "testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	s := &Bundle{Artifacts: steptest.Artifacts{
		Versions: map[string]string{"containerd/containerd": "2.1.0"},
		Text: map[string]string{"flannel": upstream("upstream.yaml"), "calico": upstream("calico.yaml"),
			"metallb":    "{apiVersion: v1, kind: Namespace, metadata: {name: metallb-system}}\n---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: speaker, namespace: metallb-system}}\n",
			"site-tools": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: tools}, spec: {replicas: 2}}\n"},
	}, blobs: map[string][]byte{}, trees: map[string][]v1.Descriptor{}}
	seen := map[string]bool{}
	for _, n := range g.Nodes {
		for _, need := range n.Step.Meta().Needs {
			if need.Kind != manifest.Image || strings.HasSuffix(need.Name, "/*") || seen[need.Name] {
				continue
			}
			seen[need.Name] = true
			im, err := s.Image(need)
			if err != nil {
				t.Fatal(err)
			}
			layer := s.put(t, v1.MediaTypeImageLayerGzip, []byte("layer of "+im.Reference))
			config := s.put(t, v1.MediaTypeImageConfig, map[string]string{"os": "linux", "ref": im.Reference})
			m := s.put(t, v1.MediaTypeImageManifest, v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{layer}})
			s.trees[im.Reference] = []v1.Descriptor{config, layer, m}
			im.MediaType, im.Digest, im.Size = m.MediaType, m.Digest.String(), m.Size
			for _, arch := range []string{"amd64", "arm64"} {
				im.Platforms = append(im.Platforms, manifest.PlatformImage{Platform: manifest.Platform{OS: "linux", Arch: arch}, MediaType: m.MediaType, Digest: im.Digest, Size: m.Size})
			}
			s.pins = append(s.pins, im)
		}
	}
	return s
}

func (s *Bundle) put(t TB, mediaType string, v any) v1.Descriptor {
	t.Helper()
	b, ok := v.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	s.blobs[d.Digest.String()] = b
	return d
}

// Image returns the pin of an image.
func (s *Bundle) Image(n manifest.Need) (manifest.ImagePin, error) {
	im := manifest.ImagePin{Names: []string{n.Name}, Reference: n.Name, Digest: steptest.Digest(n.Name)} // an image of the config: its name is its reference
	if !strings.Contains(n.Name, ":") {
		var err error
		if im, err = s.Artifacts.Image(n); err != nil {
			return im, err
		}
	}
	for _, pin := range s.pins {
		if pin.Reference == im.Reference {
			return pin, nil
		}
	}
	return im, nil
}

// Images returns all pins.
func (s *Bundle) Images() []manifest.ImagePin { return s.pins }

// Tree returns the blobs of an image, its manifest last.
func (s *Bundle) Tree(im manifest.ImagePin) ([]v1.Descriptor, error) {
	return s.trees[im.Reference], nil
}

// Blob opens one blob of an image.
func (s *Bundle) Blob(d string) (io.ReadCloser, int64, error) {
	b, ok := s.blobs[d]
	if !ok {
		return nil, 0, errors.New("no such blob")
	}
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
}

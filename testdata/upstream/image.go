package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// Docker's names for the same documents, which most of the field still publishes.
const (
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerConfig   = "application/vnd.docker.container.image.v1+json"
	dockerLayer    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// Sizes of layers, in bytes, before the scale.
const (
	smallLayer = 200 << 10
	largeLayer = 4 << 20
)

// unwanted is a platform that images have and hardly anybody asks for.
var unwanted = manifest.Platform{OS: "linux", Arch: "s390x"}

// image is all that a repository holds for one tag.
type image struct {
	media     string
	document  []byte              // the index, or the only manifest
	manifests map[string]document // by digest, document among them
	blobs     map[string]Content  // by digest
	platforms []manifest.PlatformImage
}

// document is a manifest or an index, byte for byte.
type document struct {
	media string
	bytes []byte
}

// shape is how an image is published.
type shape struct {
	docker bool // a Docker manifest list, not an OCI index
	single bool // one manifest, no index
}

// shapeOf picks a shape, always the same for a reference.
func shapeOf(reference string) shape {
	return shape{docker: choose("form of "+reference, 2) == 0}
}

// makeImage makes the stand-in of reference for every one of platforms, one
// further that nobody wants, and a provenance document that is no image.
func makeImage(reference, salt string, platforms []manifest.Platform, form shape, scale float64) (*image, error) {
	img := &image{manifests: map[string]document{}, blobs: map[string]Content{}}
	var list []v1.Descriptor
	if form.single {
		platforms = platforms[:1]
	}
	for _, p := range platforms {
		d, content, err := img.addManifest(reference, salt, p, form, scale)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
		img.platforms = append(img.platforms, manifest.PlatformImage{
			Platform: p, MediaType: d.MediaType, Digest: d.Digest.String(), Size: d.Size, Content: content,
		})
	}
	if form.single {
		only := img.manifests[list[0].Digest.String()]
		img.media, img.document = only.media, only.bytes
		return img, nil
	}
	d, _, err := img.addManifest(reference, salt, unwanted, form, scale/64)
	if err != nil {
		return nil, err
	}
	list = append(list, d)
	if !form.docker {
		a, err := img.addAttestation(list[0])
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return img, img.addIndex(list, form)
}

// addManifest adds the image of one platform, and says how many bytes its
// config and layers have.
func (img *image) addManifest(reference, salt string, p manifest.Platform, form shape, scale float64) (v1.Descriptor, int64, error) {
	layers, diffs, err := img.addLayers(reference, salt, p, form, scale)
	if err != nil {
		return v1.Descriptor{}, 0, err
	}
	created := released
	config := v1.Image{
		Created:  &created,
		Author:   "a stand-in for " + reference + ", made by a test",
		Platform: v1.Platform{OS: p.OS, Architecture: p.Arch},
		Config:   v1.ImageConfig{Entrypoint: []string{"/stand-in"}, Labels: map[string]string{"stand-in-for": reference}},
		RootFS:   v1.RootFS{Type: "layers", DiffIDs: diffs},
	}
	b, err := json.Marshal(config)
	if err != nil {
		return v1.Descriptor{}, 0, err
	}
	m := v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: pick(form.docker, dockerManifest, v1.MediaTypeImageManifest),
		Config:    img.addBlob(pick(form.docker, dockerConfig, v1.MediaTypeImageConfig), b),
		Layers:    layers,
	}
	content := m.Config.Size
	for _, l := range layers {
		content += l.Size
	}
	d, err := img.addDocument(m.MediaType, m)
	d.Platform = &v1.Platform{OS: p.OS, Architecture: p.Arch}
	if form.docker && p.Arch == "arm64" {
		d.Platform.Variant = "v8"
	}
	return d, content, err
}

// addLayers adds a base layer that other images have too, and one to three of
// the image's own. Some images have the same empty layer twice, as builders make.
func (img *image) addLayers(reference, salt string, p manifest.Platform, form shape, scale float64) ([]v1.Descriptor, []digest.Digest, error) {
	base := fmt.Sprintf("base-%d/%s", choose("base of "+reference, 3), p)
	names := []string{base}
	for i := range 1 + choose("layers of "+reference, 3) {
		names = append(names, fmt.Sprintf("%s/%s/%d", reference, p, i))
	}
	if choose("empty layers of "+reference, 3) == 0 {
		names = append(names, "", "")
	}
	var layers []v1.Descriptor
	var diffs []digest.Digest
	for _, name := range names {
		content := func(seed string) entry {
			return entry{name: "usr/lib/content", mode: 0o644, body: packed(seed, size(name, smallLayer, largeLayer, scale))}
		}
		var entries []entry
		switch name {
		case "":
		case base:
			entries = []entry{content(name)} // nothing of the image's own: the layer is shared
		default:
			entries = []entry{{name: "usr/share/doc/STAND-IN", mode: 0o644, body: text(note(reference, p.String()))}, content(name + salt)}
		}
		tape, err := archive(entries)
		if err != nil {
			return nil, nil, err
		}
		g, err := compress(tape)
		if err != nil {
			return nil, nil, err
		}
		d := v1.Descriptor{MediaType: pick(form.docker, dockerLayer, v1.MediaTypeImageLayerGzip), Digest: digest.Digest("sha256:" + g.digest), Size: g.Size()}
		img.blobs[d.Digest.String()] = g
		layers, diffs = append(layers, d), append(diffs, digest.Digest("sha256:"+g.content))
	}
	return layers, diffs, nil
}

// addAttestation adds what buildkit puts beside an image: a manifest in the
// index whose platform is unknown and which is not to be run.
func (img *image) addAttestation(of v1.Descriptor) (v1.Descriptor, error) {
	const statement = "application/vnd.in-toto+json"
	m := v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: v1.MediaTypeImageManifest,
		Config:    img.addBlob(v1.MediaTypeImageConfig, []byte(`{"architecture":"unknown","os":"unknown","config":{},"rootfs":{"type":"layers","diff_ids":[]}}`)),
		Layers:    []v1.Descriptor{img.addBlob(statement, []byte(`{"_type":"https://in-toto.io/Statement/v0.1","subject":[{"digest":{"sha256":"`+of.Digest.Encoded()+`"}}]}`))},
	}
	d, err := img.addDocument(m.MediaType, m)
	d.Platform = &v1.Platform{OS: "unknown", Architecture: "unknown"}
	d.Annotations = map[string]string{
		"vnd.docker.reference.type":   "attestation-manifest",
		"vnd.docker.reference.digest": of.Digest.String(),
	}
	return d, err
}

// addIndex makes the document that the tag names.
func (img *image) addIndex(list []v1.Descriptor, form shape) error {
	index := v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: pick(form.docker, dockerList, v1.MediaTypeImageIndex),
		Manifests: list,
	}
	d, err := img.addDocument(index.MediaType, index)
	if err != nil {
		return err
	}
	img.media, img.document = d.MediaType, img.manifests[d.Digest.String()].bytes
	return nil
}

// addDocument writes v as its publisher would: Docker's tools indent by three
// spaces, so whoever writes such a document anew changes its digest.
func (img *image) addDocument(media string, v any) (v1.Descriptor, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	if media == dockerList || media == dockerManifest {
		enc.SetIndent("", "   ")
	} else {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return v1.Descriptor{}, err
	}
	raw := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	d := v1.Descriptor{MediaType: media, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	img.manifests[d.Digest.String()] = document{media: media, bytes: raw}
	return d, nil
}

func (img *image) addBlob(media string, b []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: media, Digest: digest.FromBytes(b), Size: int64(len(b))}
	img.blobs[d.Digest.String()] = bytes.NewReader(b)
	return d
}

func pick(docker bool, a, b string) string {
	if docker {
		return a
	}
	return b
}

// digest names the document that the tag names.
func (img *image) digest() string { return digest.FromBytes(img.document).String() }

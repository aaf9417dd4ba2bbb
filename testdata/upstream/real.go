package upstream

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// Real is content that is served in place of stand-ins. What a lock names and
// Real does not have stays a stand-in; Server.StandIns lists that.
type Real struct {
	// Files gives the file on disk that is published at an address.
	Files map[string]string
	// Layouts are the folders of OCI layouts; each image of them is published
	// under the reference that its index notes as the image's name.
	Layouts []string
}

// onDisk is a file's content; it stays open as long as the process runs.
type onDisk struct {
	*os.File
	size int64
}

func (f onDisk) Size() int64 { return f.size }

func openContent(name string) (Content, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return onDisk{File: f, size: info.Size()}, nil
}

// file opens what is published at a's address, and notes in a its size and
// digest and those of its members; false where there is nothing.
func (r Real) file(a *manifest.Artifact) (file, bool, error) {
	name, ok := r.Files[a.Address]
	if !ok {
		return file{}, false, nil
	}
	body, err := openContent(name)
	if err != nil {
		return file{}, false, fmt.Errorf("%s: %w", a.ID, err)
	}
	f := file{body: body, typ: "application/octet-stream"}
	if f.sha256, err = sha256Of(body); err != nil {
		return file{}, false, fmt.Errorf("%s: %w", a.ID, err)
	}
	a.Size, a.SHA256 = body.Size(), f.sha256
	if a.Archive != "" {
		if err := readMembers(body, a.Members); err != nil {
			return file{}, false, fmt.Errorf("%s: %s: %w", a.ID, name, err)
		}
	}
	return f, true, nil
}

// readMembers notes the size and digest of each of want from an archive that holds them all.
func readMembers(archive Content, want []manifest.Member) error {
	z, err := gzip.NewReader(io.NewSectionReader(archive, 0, archive.Size()))
	if err != nil {
		return err
	}
	lacking := len(want)
	for t := tar.NewReader(z); lacking > 0; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it lacks %d of the %d files that are wanted of it", lacking, len(want))
		}
		if err != nil {
			return err
		}
		i := slices.IndexFunc(want, func(m manifest.Member) bool { return path.Clean(m.Path) == path.Clean(h.Name) })
		if i < 0 || h.Typeflag != tar.TypeReg {
			continue
		}
		sha := sha256.New()
		if want[i].Size, err = io.Copy(sha, t); err != nil { //nolint:gosec // bytes that a test made
			return err
		}
		want[i].SHA256 = sum(sha)
		lacking--
	}
	return nil
}

// image gives the image that is published under a reference; nil where there is none.
func (r Real) image(reference string) (*image, error) {
	for _, dir := range r.Layouts {
		if img, err := (ociLayout{dir}).image(reference); img != nil || err != nil {
			return img, err
		}
	}
	return nil, nil //nolint:nilnil // as the comment says
}

// ociLayout is the folder of an OCI layout.
type ociLayout struct{ dir string }

// image gives the image that the index notes a reference for; nil where there is none.
func (o ociLayout) image(reference string) (*image, error) {
	raw, err := os.ReadFile(filepath.Join(o.dir, "index.json"))
	if err != nil {
		return nil, err
	}
	var index v1.Index
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", o.dir, err)
	}
	i := slices.IndexFunc(index.Manifests, func(d v1.Descriptor) bool { return d.Annotations[v1.AnnotationRefName] == reference })
	if i < 0 {
		return nil, nil //nolint:nilnil // as the comment says
	}
	img := &image{manifests: map[string]document{}, blobs: map[string]Content{}}
	top := index.Manifests[i]
	if img.document, err = o.readDocument(img, top); err != nil {
		return nil, err
	}
	img.media = top.MediaType
	if top.MediaType == v1.MediaTypeImageManifest {
		return img, o.readManifest(img, top)
	}
	var of v1.Index
	if err := json.Unmarshal(img.document, &of); err != nil {
		return nil, fmt.Errorf("%s: %w", reference, err)
	}
	for _, d := range of.Manifests {
		if _, err := o.readDocument(img, d); err != nil {
			return nil, err
		}
		if err := o.readManifest(img, d); err != nil {
			return nil, err
		}
	}
	return img, nil
}

// readDocument adds an index or a manifest to img.
func (o ociLayout) readDocument(img *image, d v1.Descriptor) ([]byte, error) {
	raw, err := os.ReadFile(o.blob(d.Digest))
	if err != nil {
		return nil, err
	}
	img.manifests[d.Digest.String()] = document{media: d.MediaType, bytes: raw}
	return raw, nil
}

// readManifest adds the config and layers of a manifest that img has, and its platform.
func (o ociLayout) readManifest(img *image, d v1.Descriptor) error {
	var m v1.Manifest
	if err := json.Unmarshal(img.manifests[d.Digest.String()].bytes, &m); err != nil {
		return fmt.Errorf("manifest %s: %w", d.Digest, err)
	}
	p := manifest.PlatformImage{MediaType: d.MediaType, Digest: d.Digest.String(), Size: d.Size}
	for _, b := range append([]v1.Descriptor{m.Config}, m.Layers...) {
		body, err := openContent(o.blob(b.Digest))
		if err != nil {
			return err
		}
		img.blobs[b.Digest.String()] = body
		p.Content += b.Size
	}
	var config v1.Image
	raw, err := os.ReadFile(o.blob(m.Config.Digest))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return fmt.Errorf("config %s: %w", m.Config.Digest, err)
	}
	p.Platform = manifest.Platform{OS: config.OS, Arch: config.Architecture}
	img.platforms = append(img.platforms, p)
	return nil
}

func (o ociLayout) blob(d digest.Digest) string {
	return filepath.Join(o.dir, "blobs", strings.Replace(d.String(), ":", string(filepath.Separator), 1))
}

// StandIns lists what is not real of what is served: ids of artifacts and
// references of images, sorted.
func (s *Server) StandIns() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, a := range s.lock.Artifacts {
		if _, found := s.o.Real.Files[a.Address]; !found {
			list = append(list, a.ID)
		}
	}
	for _, i := range s.lock.Images {
		if !s.genuine[i.Reference] {
			list = append(list, i.Reference)
		}
	}
	slices.Sort(list)
	return list
}

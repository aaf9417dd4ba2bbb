package registry

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
)

// ForPlatform lists the blobs of an image for one platform: its manifest with config and
// layers, and the indexes that contain it. It does not list blobs of other platforms.
func ForPlatform(src Source, im manifest.ImagePin, p manifest.Platform) ([]v1.Descriptor, error) {
	i := slices.IndexFunc(im.Platforms, func(x manifest.PlatformImage) bool { return x.Platform == p })
	if i < 0 {
		return nil, fmt.Errorf("%s: there is no manifest for %s", im.Reference, p)
	}
	x := im.Platforms[i]
	out, err := src.Tree(manifest.ImagePin{ID: im.ID, Reference: im.Reference, MediaType: x.MediaType, Digest: x.Digest, Size: x.Size})
	if err != nil || x.Digest == im.Digest {
		return out, err
	}
	complete, err := src.Tree(im)
	for _, d := range complete {
		if bundle.IsIndex(d.MediaType) {
			out = append(out, d)
		}
	}
	return out, err
}

// Layout is an OCI image layout of one image as a tar stream. It is generated while it is read:
// blobs are read from src and not stored. index.json is the last file, so that an incomplete
// stream is not an image. Close may be called during Read, so that a command that has ended
// does not wait for its input.
type Layout struct {
	mu     sync.Mutex
	rest   []func() (io.ReadCloser, error) // the remaining parts
	now    io.ReadCloser
	closed bool
}

// NewLayout returns the layout of im with some names and with some of its blobs.
func NewLayout(src Source, im manifest.ImagePin, names []string, blobs []v1.Descriptor) (*Layout, error) {
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	for _, n := range names {
		index.Manifests = append(index.Manifests, v1.Descriptor{
			MediaType: im.MediaType, Digest: digest.Digest(im.Digest), Size: im.Size, Annotations: map[string]string{bundle.AnnotationImage: n},
		})
	}
	l := &Layout{}
	if err := l.document(v1.ImageLayoutFile, v1.ImageLayout{Version: v1.ImageLayoutVersion}); err != nil {
		return nil, err
	}
	for _, d := range blobs {
		name := "blobs/" + d.Digest.Algorithm().String() + "/" + d.Digest.Encoded()
		err := l.file(name, d.Size, func() (io.ReadCloser, error) {
			rc, size, err := src.Blob(d.Digest.String())
			if err == nil && size != d.Size {
				err = fmt.Errorf("blob %s has %d bytes instead of %d", d.Digest, size, d.Size)
				_ = rc.Close() // read only: nothing to lose
			}
			return &sized{rc, d.Size}, err
		})
		if err != nil {
			return nil, err
		}
	}
	if err := l.document(v1.ImageIndexFile, index); err != nil {
		return nil, err
	}
	l.add(make([]byte, 2*tarBlock)) // the end of a tar
	return l, nil
}

// tarBlock is the size of a tar block in bytes.
const tarBlock = 512

func (l *Layout) add(b []byte) {
	l.rest = append(l.rest, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
}

func (l *Layout) document(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.file(name, int64(len(text)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil })
}

// file adds a file: its header, its content, and padding for the last block.
func (l *Layout) file(name string, size int64, open func() (io.ReadCloser, error)) error {
	var head bytes.Buffer
	if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}); err != nil {
		return err
	}
	l.add(head.Bytes())
	l.rest = append(l.rest, open)
	l.add(make([]byte, -size&(tarBlock-1)))
	return nil
}

// Read implements io.Reader.
func (l *Layout) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, fs.ErrClosed
	}
	for {
		if l.now == nil {
			if len(l.rest) == 0 {
				return 0, io.EOF
			}
			rc, err := l.rest[0]()
			if err != nil {
				return 0, err
			}
			l.now, l.rest = rc, l.rest[1:]
		}
		n, err := l.now.Read(p)
		if err != io.EOF {
			return n, err
		}
		if err := l.end(); n > 0 || err != nil {
			return n, err
		}
	}
}

// end closes the current part.
func (l *Layout) end() error {
	if l.now == nil {
		return nil
	}
	rc := l.now
	l.now = nil
	return rc.Close()
}

// Close ends the stream. It may be called during Read.
func (l *Layout) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.end()
}

// sized checks that a blob has its size: with another size, the reader of the tar would
// misinterpret the following data.
type sized struct {
	io.ReadCloser
	left int64
}

func (s *sized) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.left -= int64(n)
	switch {
	case s.left < 0:
		return 0, fmt.Errorf("a blob is longer than its descriptor's size: %w", io.ErrShortBuffer)
	case err == io.EOF && s.left > 0:
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

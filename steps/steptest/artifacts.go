package steptest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
)

// Artifacts is a fake bundle that contains every requested file and image. The content of
// a file is derived from its name.
type Artifacts struct {
	// Versions are the versions of files, by the name of a Need. The default is v1.0.0.
	Versions map[string]string
	// Text is the content of files, by the name of a Need.
	Text map[string]string
	// Pins is the result of Images.
	Pins []manifest.ImagePin
	// Repositories are the package repositories, by the name of a Need.
	Repositories map[string]Repository
}

func (a Artifacts) text(n manifest.Need, p manifest.Platform) string {
	if t, ok := a.Text[n.Name]; ok {
		return t
	}
	if system, file, ok := strings.Cut(n.Name, "/"); ok && n.Kind == manifest.Packages {
		return a.Repositories[system].files()[file]
	}
	return fmt.Sprintf("%s %s for %s\n", n.Kind, n.Name, p)
}

// Lookup returns the entry of a file.
func (a Artifacts) Lookup(n manifest.Need, p manifest.Platform) (manifest.Blob, error) {
	text := a.text(n, p)
	sum := sha256.Sum256([]byte(text))
	version := a.Versions[n.Name]
	if version == "" {
		version = "v1.0.0"
	}
	return manifest.Blob{Version: version, Size: int64(len(text)), SHA256: hex.EncodeToString(sum[:])}, nil
}

// File opens a file.
func (a Artifacts) File(_ context.Context, n manifest.Need, p manifest.Platform) (io.ReadCloser, manifest.Blob, error) {
	b, err := a.Lookup(n, p)
	return io.NopCloser(strings.NewReader(a.text(n, p))), b, err
}

// Repository returns one of Repositories.
func (a Artifacts) Repository(n manifest.Need, p manifest.Platform) (manifest.Artifact, error) {
	r, ok := a.Repositories[n.Name]
	if !ok {
		return manifest.Artifact{}, fmt.Errorf("no packages of %s", n.Name)
	}
	return r.artifact(n.Name, p), nil
}

// Image returns a pin whose reference is derived from the name, and its digest from the
// reference.
func (a Artifacts) Image(n manifest.Need) (manifest.ImagePin, error) {
	if n.Kind != manifest.Image {
		return manifest.ImagePin{}, fmt.Errorf("%s %s is no image", n.Kind, n.Name)
	}
	ref := path.Join("registry.k8s.io", n.Name) + ":1.0"
	return manifest.ImagePin{Names: []string{n.Name}, Reference: ref, Digest: Digest(ref)}, nil
}

// Digest returns the digest of a fake image.
func Digest(reference string) string {
	sum := sha256.Sum256([]byte(reference))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Images returns Pins.
func (a Artifacts) Images() []manifest.ImagePin { return a.Pins }

// Blob returns an error.
func (Artifacts) Blob(digest string) (io.ReadCloser, int64, error) {
	return nil, 0, fmt.Errorf("no blob %s", digest)
}

// Tree returns an error.
func (Artifacts) Tree(im manifest.ImagePin) ([]v1.Descriptor, error) {
	return nil, fmt.Errorf("no image %s", im.Reference)
}

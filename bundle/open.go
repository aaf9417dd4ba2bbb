package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/delta"
	"github.com/mensylisir/kubexm/manifest"
)

// Verifier checks the signatures of a bundle: the content of the signature slot against the
// digest of the root. It returns the accepted signatures, at least one, or an error with
// the reasons. bundle/sign has the implementation.
type Verifier interface {
	Verify(ctx context.Context, root v1.Descriptor, signatures []byte) ([]AcceptedSignature, error)
}

// Policy specifies which bundles are trusted. The zero Policy trusts none.
type Policy struct {
	Verifier Verifier
	// AllowUnsigned trusts any complete bundle without a signature. A signature that
	// Verifier rejects is an error nevertheless.
	AllowUnsigned bool
	// Kubexm is the version of this program, to compare with the minimum version in a
	// signature. A value that is not a version, "" or "dev", satisfies every minimum.
	Kubexm string
}

// ErrUntrusted means that a Policy refuses the bundle.
var ErrUntrusted = errors.New("bundle is not trusted")

func (p Policy) check(ctx context.Context, root v1.Descriptor, signatures []byte) ([]AcceptedSignature, error) {
	signed := len(bytes.TrimSpace(signatures)) > 0
	switch {
	case signed && p.Verifier != nil:
		vouchers, err := p.Verifier.Verify(ctx, root, signatures)
		if err != nil {
			return nil, &TrustError{Code: TrustSignature, Err: err}
		}
		for _, v := range vouchers {
			if err := p.newEnough(v.Claim.MinimumKubexm); err != nil {
				return nil, err
			}
		}
		return vouchers, nil
	case p.AllowUnsigned:
		return nil, nil
	case signed:
		return nil, &TrustError{Code: TrustNobody, Detail: "it is signed, but no key to verify the signature with was given"}
	}
	return nil, &TrustError{Code: TrustUnsigned, Detail: "it is not signed"}
}

// CheckVersion returns an error if text is not a version such as 0.3.0.
func CheckVersion(text string) error {
	_, err := semver.NewVersion(text)
	return err
}

// newEnough compares the version of this program with the minimum version of a bundle.
func (p Policy) newEnough(minimum string) error {
	if minimum == "" {
		return nil
	}
	want, err := semver.NewVersion(minimum)
	if err != nil {
		return &TrustError{Code: TrustKubexm, Detail: fmt.Sprintf("it requires kubexm %.40q, which is not a version", minimum)}
	}
	own, err := semver.NewVersion(p.Kubexm)
	if err != nil || !own.LessThan(want) {
		return nil
	}
	return &TrustError{Code: TrustKubexm, Detail: fmt.Sprintf("it requires kubexm %s or newer, this is %s", minimum, p.Kubexm)}
}

// Bundle is an opened archive. Its head was verified: the lock, the config, and the
// complete set of blobs that these pin.
type Bundle struct {
	Root    v1.Descriptor
	Lock    *manifest.Lock
	Config  []byte // the cluster config without secrets, as YAML
	Summary Summary
	Signed  bool // the signature slot is not empty; Policy decides whether a signature is accepted
	// AcceptedSignatures are the accepted signatures; empty if the policy required none.
	AcceptedSignatures []AcceptedSignature
	Delta              *delta.Delta // describes a delta; nil for a complete bundle
	// DetachedSignature is the path of the detached signature beside the archive, for cosign;
	// "" if there is none. It is not verified: see DetachedSuffix.
	DetachedSignature string

	path    string
	archive *archive.Reader
	bases   []*Bundle
	passed  []error             // errors of known bases that could not be opened
	rest    *delta.OmittedBlobs // of a delta, the blobs that are not in the archive
	others  []v1.Descriptor     // children of the root, without the metadata
	texts   map[string][]byte   // the metadata's documents as stored, by media type
}

// Open opens the archive at path, or the archive whose first volume that is. It asks policy
// about the root before it reads anything else. It then checks that the archive contains
// exactly the blobs that the root references. It reads no payload: see Verify. For a delta,
// bases are archives with the other blobs; if a blob is still absent, Open returns a
// *AbsentBlobsError.
func Open(ctx context.Context, path string, policy Policy, bases ...string) (*Bundle, error) {
	b, err := OpenPartial(ctx, path, policy, Bases{Explicit: bases})
	if err != nil {
		return nil, err
	}
	if err := b.CheckComplete(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// OpenPartial is like Open for callers that do not need all blobs: of a delta, files and
// layers may be absent. See CheckComplete.
func OpenPartial(ctx context.Context, path string, policy Policy, bases Bases) (*Bundle, error) {
	r, err := archive.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	b := &Bundle{path: path, archive: r, rest: delta.NewOmittedBlobs()}
	if err := b.readHead(ctx, policy); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, errors.Join(err, r.Close()))
	}
	if err := b.openBases(ctx, bases); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Size is the size of the archive in bytes, all its volumes together.
func (b *Bundle) Size() int64 { return b.archive.Size() }

// Close closes the archive and its bases.
func (b *Bundle) Close() error {
	err := b.archive.Close()
	for _, x := range b.bases {
		err = errors.Join(err, x.Close())
	}
	return err
}

func (b *Bundle) readHead(ctx context.Context, policy Policy) error {
	if err := b.readRoot(ctx, policy); err != nil {
		return err
	}
	var root v1.Index
	if err := b.decode(b.Root, &root); err != nil {
		return fmt.Errorf("root index: %w", err)
	}
	if root.ArtifactType != TypeRoot || len(root.Manifests) == 0 || root.Manifests[0].ArtifactType != typeMetadata {
		return rootError(root.ArtifactType)
	}
	b.others = root.Manifests[1:]
	if err := b.readMetadata(root.Manifests[0]); err != nil {
		return err
	}
	for _, v := range b.AcceptedSignatures {
		if err := v.Claim.agrees(b.Lock); err != nil {
			return err
		}
	}
	return b.checkClosure(root)
}

// readRoot reads the root's descriptor from index.json, which no signature covers. Only the
// digest is used from it, and the policy decides about that.
func (b *Bundle) readRoot(ctx context.Context, policy Policy) error {
	text, err := b.archive.File("index.json")
	if err != nil {
		return err
	}
	var index v1.Index
	if err := strictJSON(text, &index); err != nil {
		return fmt.Errorf("index.json: %w", err)
	}
	if len(index.Manifests) != 1 {
		return &FormatError{Code: CodeRoot, What: fmt.Sprintf("index.json lists %d manifests instead of only the root", len(index.Manifests))}
	}
	b.Root = index.Manifests[0]
	if b.Root.MediaType != v1.MediaTypeImageIndex || b.Root.Digest.Validate() != nil {
		return &FormatError{Code: CodeRoot, What: fmt.Sprintf("index.json lists a %s with digest %q as its root", b.Root.MediaType, b.Root.Digest)}
	}
	if b.Delta, err = delta.Read(b.Root.Annotations); err != nil {
		return &FormatError{Code: CodeRoot, What: "index.json " + err.Error()}
	}
	if err := b.checkFrame(text); err != nil {
		return err
	}
	b.Root.Annotations = nil // the root is that of the complete bundle; annotations of a delta are not part of it
	signatures, err := b.archive.Signatures()
	if err != nil {
		return err
	}
	b.Signed = len(bytes.TrimSpace(signatures)) > 0
	b.DetachedSignature = detachedPath(b.path)
	b.AcceptedSignatures, err = policy.check(ctx, b.Root, signatures)
	if why, ok := errors.AsType[*TrustError](err); ok && why.Code == TrustUnsigned && b.DetachedSignature != "" {
		why.Detail += fmt.Sprintf(": %s signs the file only, for cosign verify-blob, and is not accepted here", b.DetachedSignature)
	}
	return err
}

// checkFrame checks the two files that no digest covers byte by byte: other tools might act
// upon additional content.
func (b *Bundle) checkFrame(index []byte) error {
	layout, err := b.archive.File("oci-layout")
	if err != nil {
		return err
	}
	if !bytes.Equal(layout, ociLayout) {
		return &FormatError{Code: CodeRoot, What: fmt.Sprintf("oci-layout is %.80q", layout)}
	}
	want, err := indexOf(v1.Descriptor{MediaType: b.Root.MediaType, ArtifactType: TypeRoot, Digest: b.Root.Digest, Size: b.Root.Size}, b.Delta)
	if err != nil {
		return err
	}
	if !bytes.Equal(index, want) {
		return &FormatError{Code: CodeRoot, What: "index.json is not exactly the descriptor of its root"}
	}
	return nil
}

func (b *Bundle) readMetadata(d v1.Descriptor) error {
	var m v1.Manifest
	if err := b.decode(d, &m); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	found := map[string][]byte{}
	for _, l := range m.Layers {
		text, err := b.read(l)
		if err != nil {
			return fmt.Errorf("metadata: %w", err)
		}
		found[l.MediaType] = text
	}
	for _, want := range []string{mediaLock, mediaConfig, mediaSummary} {
		if found[want] == nil {
			return &FormatError{Code: CodeDocument, What: "the metadata lacks a " + want}
		}
	}
	lock, problems := manifest.DecodeLock(bytes.NewReader(found[mediaLock]))
	if err := problems.In("kubexm.lock").Err(); err != nil {
		return &FormatError{Code: CodeDocument, What: "its lock is not valid: " + err.Error()}
	}
	b.Lock, b.Config, b.texts = lock, found[mediaConfig], found
	if got := digest.FromBytes(b.Config).String(); got != lock.Config {
		return &FormatError{Code: CodeDocument, What: fmt.Sprintf("its config has digest %s, its lock is for a config with digest %s", got, lock.Config)}
	}
	if err := strictJSON(found[mediaSummary], &b.Summary); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	return nil
}

// maxDocument is the maximum size of a manifest, index or other document that is read into
// memory.
const maxDocument = 16 << 20

// read returns the content of a small blob, checked against its descriptor.
func (b *Bundle) read(d v1.Descriptor) ([]byte, error) {
	if d.Size > maxDocument {
		return nil, &FormatError{Code: CodeLimit, What: fmt.Sprintf("document %s has %d bytes", d.Digest, d.Size)}
	}
	rc, size, err := b.archive.Blob(d.Digest.String())
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	if size != d.Size {
		return nil, &FormatError{Code: CodeTree, What: fmt.Sprintf("blob %s has %d bytes, its descriptor states %d", d.Digest, size, d.Size)}
	}
	text, err := io.ReadAll(rc)
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", d.Digest, err)
	}
	return text, nil
}

func (b *Bundle) decode(d v1.Descriptor, v any) error {
	text, err := b.read(d)
	if err != nil {
		return err
	}
	return decodeJSON(text, v)
}

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

// Verifier checks the signatures of a bundle: the content of the signature slot
// against the digest of the root. It gives those that count, at least one, or an
// error that says why none does. bundle/sign holds the one that people use.
type Verifier interface {
	Verify(ctx context.Context, root v1.Descriptor, signatures []byte) ([]Voucher, error)
}

// Policy says which bundles are trusted. The zero Policy trusts none.
type Policy struct {
	Verifier Verifier
	// AllowUnsigned trusts any bundle that is whole, whoever made it. A signature
	// that Verifier refuses is refused all the same.
	AllowUnsigned bool
	// Kubexm is this program's own version, which a signature's minimum is
	// compared with. What is no version, "" and "dev", is new enough for all.
	Kubexm string
}

// ErrUntrusted is why a Policy refuses a bundle.
var ErrUntrusted = errors.New("bundle is not trusted")

func (p Policy) check(ctx context.Context, root v1.Descriptor, signatures []byte) ([]Voucher, error) {
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
		return nil, &TrustError{Code: TrustNobody, Detail: "it is signed, and no key to check that with was given"}
	}
	return nil, &TrustError{Code: TrustUnsigned, Detail: "it is not signed"}
}

// CheckVersion tells whether a text is a version, as in 0.3.0.
func CheckVersion(text string) error {
	_, err := semver.NewVersion(text)
	return err
}

// newEnough compares this program's version with the oldest that may use a bundle.
func (p Policy) newEnough(minimum string) error {
	if minimum == "" {
		return nil
	}
	want, err := semver.NewVersion(minimum)
	if err != nil {
		return &TrustError{Code: TrustKubexm, Detail: fmt.Sprintf("it asks for kubexm %.40q, which is no version", minimum)}
	}
	own, err := semver.NewVersion(p.Kubexm)
	if err != nil || !own.LessThan(want) {
		return nil
	}
	return &TrustError{Code: TrustKubexm, Detail: fmt.Sprintf("it asks for kubexm %s or newer, this is %s", minimum, p.Kubexm)}
}

// Bundle is an archive whose head was checked: its lock, its config, and the
// complete set of blobs that these name.
type Bundle struct {
	Root    v1.Descriptor
	Lock    *manifest.Lock
	Config  []byte // the cluster config without secrets, as YAML
	Summary Summary
	Signed  bool // the signature slot is not empty; Policy says whether that counts
	// Vouchers are the signatures that count; none where the policy asked for none.
	Vouchers []Voucher
	Delta    *delta.Delta // what the archive is a part for; nil where it holds the whole bundle
	// Beside is the path of a signature of the archive's file beside it, for cosign;
	// "" where there is none. It is not looked at: see DetachedSuffix.
	Beside string

	path    string
	archive *archive.Reader
	bases   []*Bundle
	passed  []error           // why known bases are not among these
	rest    *delta.Rest       // of a delta, what the archive does not hold
	others  []v1.Descriptor   // children of the root beside the metadata
	texts   map[string][]byte // the metadata's documents as stored, by media type
}

// Open reads the head of the archive at path (or of the one whose first volume
// that is), asks policy about its root before
// anything else is looked at, and checks that the archive holds exactly the
// blobs that the root leads to. No payload is read: see Verify. Of a delta,
// bases are archives that hold the rest; without all of it, it is not opened.
func Open(ctx context.Context, path string, policy Policy, bases ...string) (*Bundle, error) {
	b, err := OpenPart(ctx, path, policy, Bases{Given: bases})
	if err != nil {
		return nil, err
	}
	if err := b.Whole(); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// OpenPart is Open for those who do without the whole: of a delta, files and
// layers may be absent after it. See Whole.
func OpenPart(ctx context.Context, path string, policy Policy, bases Bases) (*Bundle, error) {
	r, err := archive.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	b := &Bundle{path: path, archive: r, rest: delta.NewRest()}
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
	for _, v := range b.Vouchers {
		if err := v.Claim.agrees(b.Lock); err != nil {
			return err
		}
	}
	return b.checkClosure(root)
}

// readRoot takes the root's descriptor from index.json, which is covered by no
// signature: all it may say is one digest, and the policy judges that.
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
		return &FormatError{Code: CodeRoot, What: fmt.Sprintf("index.json names %d manifests, not the one root", len(index.Manifests))}
	}
	b.Root = index.Manifests[0]
	if b.Root.MediaType != v1.MediaTypeImageIndex || b.Root.Digest.Validate() != nil {
		return &FormatError{Code: CodeRoot, What: fmt.Sprintf("index.json names a %s with digest %q as its root", b.Root.MediaType, b.Root.Digest)}
	}
	if b.Delta, err = delta.Read(b.Root.Annotations); err != nil {
		return &FormatError{Code: CodeRoot, What: "index.json " + err.Error()}
	}
	if err := b.checkFrame(text); err != nil {
		return err
	}
	b.Root.Annotations = nil // the whole bundle's root: what is said of a delta is no part of it
	signatures, err := b.archive.Signatures()
	if err != nil {
		return err
	}
	b.Signed = len(bytes.TrimSpace(signatures)) > 0
	b.Beside = beside(b.path)
	b.Vouchers, err = policy.check(ctx, b.Root, signatures)
	if why, ok := errors.AsType[*TrustError](err); ok && why.Code == TrustUnsigned && b.Beside != "" {
		why.Detail += fmt.Sprintf(": %s is of the file alone, for cosign verify-blob, and does not count here", b.Beside)
	}
	return err
}

// checkFrame holds the two files that no digest covers to the one form that a
// builder gives them: what else they said, some other tool might act upon.
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
		return &FormatError{Code: CodeRoot, What: "index.json says more than what its root is, or says it in another way"}
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
		return &FormatError{Code: CodeDocument, What: "the lock in it is not one: " + err.Error()}
	}
	b.Lock, b.Config, b.texts = lock, found[mediaConfig], found
	if got := digest.FromBytes(b.Config).String(); got != lock.Config {
		return &FormatError{Code: CodeDocument, What: fmt.Sprintf("its config has digest %s, its lock was made for %s", got, lock.Config)}
	}
	if err := strictJSON(found[mediaSummary], &b.Summary); err != nil {
		return fmt.Errorf("summary: %w", err)
	}
	return nil
}

// maxDocument bounds a manifest, index or other document that is read whole.
const maxDocument = 16 << 20

// read gives the bytes of a small blob, checked against its descriptor.
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
		return nil, &FormatError{Code: CodeTree, What: fmt.Sprintf("blob %s has %d bytes, its descriptor says %d", d.Digest, size, d.Size)}
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

package sign

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// Unsigned is an archive to be signed.
type Unsigned struct {
	Path string
	Root digest.Digest
	Lock *manifest.Lock
}

// OpenUnsigned opens an archive for signing without verifying its signatures. It first
// completes an interrupted signing.
func OpenUnsigned(ctx context.Context, path string) (Unsigned, error) {
	if err := archive.RestoreSignatures(path); err != nil {
		return Unsigned{}, err
	}
	b, err := bundle.OpenPartial(ctx, path, bundle.Policy{AllowUnsigned: true}, bundle.Bases{})
	if err != nil {
		return Unsigned{}, err
	}
	return Unsigned{path, b.Root.Digest, b.Lock}, b.Close()
}

// ClaimOf returns the claim to sign for the bundle of l. minimum is the oldest version of
// kubexm that may use the bundle; "" allows any.
func ClaimOf(l *manifest.Lock, minimum string) (bundle.Claim, error) {
	c := bundle.ClaimOf(l)
	if minimum == "" {
		return c, nil
	}
	if err := bundle.CheckVersion(minimum); err != nil {
		return c, &refusal.Error{Err: fmt.Errorf("--minimum-kubexm %s: %w", minimum, err), Kind: refusal.Usage, Advice: "write a version such as 0.3.0; `kubexm version` prints the version of this program"}
	}
	c.MinimumKubexm = minimum
	return c, nil
}

// maxProvenance is the maximum length of a line with provenance: the slot has 256 KiB for
// the signatures of all signers.
const maxProvenance = 112 << 10

// BundleSigner signs bundles with a key and the version of kubexm that built them.
type BundleSigner struct {
	*Signer
	Version string
	Log     *slog.Logger
}

// Lines returns the signed lines for the slot: the claim, and the provenance if it is not
// too long.
func (m BundleSigner) Lines(root digest.Digest, l *manifest.Lock, c bundle.Claim) ([][]byte, error) {
	line, err := m.SignRoot(root.String(), c)
	if err != nil {
		return nil, err
	}
	made, err := m.SignProvenance(root.String(), c.Cluster, bundle.ProvenanceOf(l, m.Version))
	if err != nil {
		return nil, err
	}
	if len(made) > maxProvenance {
		m.Log.Warn("the provenance is too long for the archive and is left out; the lock in the archive lists every input", "bytes", len(made))
		return [][]byte{line}, nil
	}
	return [][]byte{line, made}, nil
}

// SignArchive writes m's signatures into the slot and writes the detached signature. It
// replaces previous signatures of m and preserves those of others. If the slot has no space
// for the provenance, that is left out.
func (m BundleSigner) SignArchive(ctx context.Context, u Unsigned, c bundle.Claim) error {
	lines, err := m.Lines(u.Root, u.Lock, c)
	if err != nil {
		return err
	}
	public, err := m.PublicKey()
	if err != nil {
		return err
	}
	own, err := TrustKey(public)
	if err != nil {
		return err
	}
	keep := func(line []byte) bool {
		_, err := own.Verify(line)
		return err != nil
	}
	err = bundle.AddSignatures(ctx, u.Path, lines, keep)
	if len(lines) > 1 && errors.Is(err, archive.ErrSlot) {
		if err = bundle.AddSignatures(ctx, u.Path, lines[:1], keep); err == nil {
			m.Log.WarnContext(ctx, "no space is left for the provenance beside the other signatures: it is left out; the lock in the bundle lists every input")
		}
	}
	if err != nil {
		return err
	}
	return m.WriteDetached(u.Path)
}

// WriteDetached signs the archive's bytes and writes the signature to a file beside it.
func (s *Signer) WriteDetached(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	text, err := s.SignDigest(digest.NewDigest(digest.SHA256, h).String())
	if err != nil {
		return err
	}
	return durable.WriteFile(path+bundle.DetachedSuffix, append(text, '\n'), 0o644)
}

// Attach adds a signature by another signer, in the file at path, to the archive. It checks
// that the signature is about this bundle; the signer is verified when the bundle is used.
func Attach(ctx context.Context, u Unsigned, path string) error {
	text, err := ReadFile(path)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return &refusal.Error{Err: fmt.Errorf("%s: %w", path, err), Kind: refusal.Usage, Advice: "specify the file that cosign wrote with --bundle"}
	}
	st, err := Peek(line.Bytes())
	if err != nil {
		return &refusal.Error{Err: fmt.Errorf("%s: %w", path, err), Kind: refusal.Usage, Advice: "sign the statement with `cosign attest-blob --statement … --bundle …`"}
	}
	if st.PredicateType != bundle.TypeClaim || !st.About(u.Root.String()) {
		return &refusal.Error{Err: fmt.Errorf("%s does not sign the bundle %s", path, u.Root), Kind: refusal.Usage, Advice: "sign the statement that `kubexm bundle sign --print-statement " + u.Path + "` prints"}
	}
	if err := bundle.AddSignatures(ctx, u.Path, [][]byte{line.Bytes()}, func(old []byte) bool { return !bytes.Equal(old, line.Bytes()) }); err != nil {
		return err
	}
	stale := u.Path + bundle.DetachedSuffix
	if err := os.Remove(stale); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

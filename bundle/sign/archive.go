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

// Unsigned is an archive that is to be signed: what it is.
type Unsigned struct {
	Path string
	Root digest.Digest
	Lock *manifest.Lock
}

// OpenUnsigned reads what an archive is, whoever made it; a signing that broke off is
// brought to its end first.
func OpenUnsigned(ctx context.Context, path string) (Unsigned, error) {
	if err := archive.RestoreSignatures(path); err != nil {
		return Unsigned{}, err
	}
	b, err := bundle.OpenPart(ctx, path, bundle.Policy{AllowUnsigned: true}, bundle.Bases{})
	if err != nil {
		return Unsigned{}, err
	}
	return Unsigned{path, b.Root.Digest, b.Lock}, b.Close()
}

// ClaimOf is what is to be signed of a bundle. minimum is the oldest version of kubexm
// that is to accept it; "" is any.
func ClaimOf(l *manifest.Lock, minimum string) (bundle.Claim, error) {
	c := bundle.ClaimOf(l)
	if minimum == "" {
		return c, nil
	}
	if err := bundle.CheckVersion(minimum); err != nil {
		return c, &refusal.Error{Err: fmt.Errorf("--minimum-kubexm %s: %w", minimum, err), Kind: refusal.Usage, Advice: "write a version as in 0.3.0; `kubexm version` prints this one's"}
	}
	c.MinimumKubexm = minimum
	return c, nil
}

// mostProvenance is how long a line that says how a bundle was made may be: the
// slot has 256 KiB for all that several people sign.
const mostProvenance = 112 << 10

// Maker is who signs a bundle, with a version of kubexm.
type Maker struct {
	*Signer
	Version string
	Log     *slog.Logger
}

// Lines are the lines of the slot that m signs: what the bundle is, and how it was made,
// where that is not too long.
func (m Maker) Lines(root digest.Digest, l *manifest.Lock, c bundle.Claim) ([][]byte, error) {
	line, err := m.SignRoot(root.String(), c)
	if err != nil {
		return nil, err
	}
	made, err := m.SignProvenance(root.String(), c.Cluster, bundle.ProvenanceOf(l, m.Version))
	if err != nil {
		return nil, err
	}
	if len(made) > mostProvenance {
		m.Log.Warn("the provenance is too long for the archive and left out; the lock in it names every input", "bytes", len(made))
		return [][]byte{line}, nil
	}
	return [][]byte{line, made}, nil
}

// SignArchive puts what m signs into the slot, beside what others did and in place of what
// m did before, and writes the detached signature. Where the slot has no room any more for
// how the bundle was made, that is left out.
func (m Maker) SignArchive(ctx context.Context, u Unsigned, c bundle.Claim) error {
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
			m.Log.WarnContext(ctx, "there is no room for the provenance beside the signatures of others: it is left out; the lock in the bundle names every input")
		}
	}
	if err != nil {
		return err
	}
	return m.WriteDetached(u.Path)
}

// WriteDetached signs the archive's bytes as they are, into a file beside it.
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

// Attach puts a signature into the archive that somebody else made, the file at path.
// Whose it is, is asked when the bundle is used; here it has to be one about this bundle.
func Attach(ctx context.Context, u Unsigned, path string) error {
	text, err := ReadFile(path)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return &refusal.Error{Err: fmt.Errorf("%s: %w", path, err), Kind: refusal.Usage, Advice: "name what cosign wrote with --bundle"}
	}
	st, err := Peek(line.Bytes())
	if err != nil {
		return &refusal.Error{Err: fmt.Errorf("%s: %w", path, err), Kind: refusal.Usage, Advice: "sign the statement with `cosign attest-blob --statement … --bundle …`"}
	}
	if st.PredicateType != bundle.TypeClaim || !st.About(u.Root.String()) {
		return &refusal.Error{Err: fmt.Errorf("%s is not about the bundle %s", path, u.Root), Kind: refusal.Usage, Advice: "sign what `kubexm bundle sign --print-statement " + u.Path + "` prints"}
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

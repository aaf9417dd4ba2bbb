package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

type signFlags struct {
	passwordFlags
	key     string
	minimum string
	attach  string
	print   bool
}

func (f *signFlags) addMinimum(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.minimum, "minimum-kubexm", "", "sign that older versions of kubexm are to refuse the bundle")
}

func (a *app) bundleSign() *cobra.Command {
	f := &signFlags{}
	cmd := &cobra.Command{
		Use:   "sign --sign-key cosign.key ARCHIVE",
		Short: "Sign a bundle",
		Long: `Sign what a bundle is: its root, which every byte in it follows from, with its cluster,
serial, versions and platforms, and how it was made (SLSA provenance). The signature goes into the archive's slot for it, and nothing else
in the archive changes; it is good for a delta of the same lock too, and travels with "bundle
push". A second signature by the same key replaces the first, those of others stay.

Beside the archive comes ARCHIVE.sigstore.json, a signature of the file as it is then, for
"cosign verify-blob". An archive in volumes is signed before it is split.

Who signs with cosign alone (keyless, or with a key in a KMS or a token) prints the statement with
--print-statement, has cosign attest it, and puts what that gave into the archive with --attach.

Exit codes: 0 done, 2 a key that does not open, 4 not a bundle.`,
		Example: `  kubexm bundle sign --sign-key cosign.key demo.tar.zst
  kubexm bundle sign --sign-key cosign.key --minimum-kubexm 0.3.0 demo.tar.zst
  kubexm bundle sign --print-statement demo.tar.zst > statement.json
  cosign attest-blob --statement statement.json --new-bundle-format \
    --bundle signed.json
  kubexm bundle sign --attach signed.json demo.tar.zst`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runSign(cmd.Context(), f, args[0]) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.key, "sign-key", "", useSignKey)
	renamed(cmd, "key", "sign-key")
	fs.StringVar(&f.attach, "attach", "", "put this signature, which cosign made, into the archive")
	fs.BoolVar(&f.print, "print-statement", false, "print what there is to sign, and sign nothing")
	f.addMinimum(cmd)
	f.passwordFlags.add(cmd)
	cmd.MarkFlagsOneRequired("sign-key", "attach", "print-statement")
	cmd.MarkFlagsMutuallyExclusive("sign-key", "attach", "print-statement")
	_ = cmd.MarkFlagFilename("sign-key", "key", "pem")
	_ = cmd.MarkFlagFilename("attach", "json")
	completeArchives(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) runSign(ctx context.Context, f *signFlags, path string) error {
	if err := archive.RestoreSignatures(path); err != nil {
		return refused(err)
	}
	b, err := bundle.OpenPart(ctx, path, bundle.Policy{AllowUnsigned: true}, bundle.Bases{})
	if err != nil {
		return refused(err)
	}
	root, lock := b.Root.Digest, b.Lock
	if err := b.Close(); err != nil {
		return err
	}
	claim, err := f.claim(lock)
	if err != nil {
		return err
	}
	switch {
	case f.print:
		st, err := sign.NewStatement(claim.Cluster, root.String(), bundle.TypeClaim, claim)
		if err != nil {
			return err
		}
		return a.printValue(st)
	case f.attach != "":
		return a.attach(ctx, f, path, root)
	}
	s, err := a.signer(ctx, f.key, &f.passwordFlags)
	if err != nil {
		return err
	}
	lines, err := a.signedLines(s, root, lock, claim)
	if err != nil {
		return err
	}
	public, err := s.PublicKey()
	if err != nil {
		return err
	}
	own, err := sign.TrustKey(public)
	if err != nil {
		return err
	}
	if err := a.addLines(ctx, path, lines, func(line []byte) bool {
		_, err := own.Verify(line)
		return err != nil
	}); err != nil {
		return refused(err)
	}
	if err := writeDetached(s, path); err != nil {
		return err
	}
	return a.printSigned(path, root, "key "+s.KeyID(), path+bundle.DetachedSuffix)
}

// claim is what is to be signed of a bundle.
func (f *signFlags) claim(l *manifest.Lock) (bundle.Claim, error) {
	c := bundle.ClaimOf(l)
	if f.minimum == "" {
		return c, nil
	}
	if err := bundle.CheckVersion(f.minimum); err != nil {
		return c, &refusal.Error{Err: fmt.Errorf("--minimum-kubexm %s: %w", f.minimum, err), Kind: refusal.Usage, Advice: "write a version as in 0.3.0; `kubexm version` prints this one's"}
	}
	c.MinimumKubexm = f.minimum
	return c, nil
}

// mostProvenance is how long a line that says how a bundle was made may be: the
// slot has 256 KiB for all that several people sign.
const mostProvenance = 112 << 10

// signedLines are the lines of the slot that s signs: what the bundle is, and how
// it was made, where that is not too long.
func (a *app) signedLines(s *sign.Signer, root digest.Digest, l *manifest.Lock, c bundle.Claim) ([][]byte, error) {
	line, err := s.SignRoot(root.String(), c)
	if err != nil {
		return nil, err
	}
	made, err := s.SignProvenance(root.String(), c.Cluster, bundle.ProvenanceOf(l, ownVersion()))
	if err != nil {
		return nil, err
	}
	if len(made) > mostProvenance {
		a.log.Warn("the provenance is too long for the archive and left out; the lock in it names every input", "bytes", len(made))
		return [][]byte{line}, nil
	}
	return [][]byte{line, made}, nil
}

// addLines puts what somebody signs into the slot, beside what others did; without
// how the bundle was made, where the slot has no room for that any more.
func (a *app) addLines(ctx context.Context, path string, lines [][]byte, keep func([]byte) bool) error {
	err := bundle.AddSignatures(ctx, path, lines, keep)
	if len(lines) < 2 || !errors.Is(err, archive.ErrSlot) {
		return err
	}
	if err := bundle.AddSignatures(ctx, path, lines[:1], keep); err != nil {
		return err
	}
	a.log.WarnContext(ctx, "there is no room for the provenance beside the signatures of others: it is left out; the lock in the bundle names every input")
	return nil
}

// attach puts a signature into the archive that somebody else made. Whose it is,
// is asked when the bundle is used; here it has to be one about this bundle.
func (a *app) attach(ctx context.Context, f *signFlags, path string, root digest.Digest) error {
	text, err := readSmall(f.attach)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, text); err != nil {
		return &refusal.Error{Err: fmt.Errorf("%s: %w", f.attach, err), Kind: refusal.Usage, Advice: "name what cosign wrote with --bundle"}
	}
	st, err := sign.Peek(line.Bytes())
	if err != nil {
		return &refusal.Error{Err: fmt.Errorf("%s: %w", f.attach, err), Kind: refusal.Usage, Advice: "sign the statement with `cosign attest-blob --statement … --bundle …`"}
	}
	if st.PredicateType != bundle.TypeClaim || !st.About(root.String()) {
		return &refusal.Error{Err: fmt.Errorf("%s is not about the bundle %s", f.attach, root), Kind: refusal.Usage, Advice: "sign what `kubexm bundle sign --print-statement " + path + "` prints"}
	}
	if err := bundle.AddSignatures(ctx, path, [][]byte{line.Bytes()}, func(old []byte) bool { return !bytes.Equal(old, line.Bytes()) }); err != nil {
		return refused(err)
	}
	stale := path + bundle.DetachedSuffix
	if err := os.Remove(stale); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return a.printSigned(path, root, "", "")
}

func (a *app) printSigned(path string, root digest.Digest, by, detached string) error {
	if a.structured() {
		return a.printValue(struct {
			Path     string `json:"path"`
			Root     string `json:"root"`
			By       string `json:"by,omitempty"`
			Detached string `json:"detached,omitempty"`
		}{path, root.String(), by, detached})
	}
	fmt.Fprintf(a.out, "%s: signed\n  root  %s\n", path, root)
	if by != "" {
		fmt.Fprintf(a.out, "  by    %s\n  file  %s, for cosign verify-blob\n", by, detached)
	}
	return nil
}

// writeDetached signs the archive's bytes as they are, into a file beside it.
func writeDetached(s *sign.Signer, path string) error {
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

package rpm

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/mensylisir/kubexm/packaging"
)

// Check reads and verifies a package file: size and checksum from the metadata; name,
// version and architecture in its header; and, if keys is not empty, a signature by one
// of the keys. As in rpm, a key must have been valid when it signed, because packages
// are used longer than the keys of a distribution.
func Check(r io.Reader, p *packaging.Package, keys Keys) error {
	want := sum{"sha256", p.SHA256}
	if p.SHA256 == "" {
		want = sum{"sha512", p.SHA512}
	}
	whole := newChecked(r, want, p.Size, p.Size)
	wrong := checkFile(whole, p, keys)
	// A wrong checksum explains all other errors, so it is reported first.
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	if wrong != nil {
		return fmt.Errorf("%s: %w", p, wrong)
	}
	return nil
}

func checkFile(r io.Reader, p *packaging.Package, keys Keys) error {
	if err := readLead(r); err != nil {
		return err
	}
	signatures, err := readHeader(r, true)
	if err != nil {
		return err
	}
	h, err := readHeader(r, false)
	if err != nil {
		return err
	}
	if got := h.identity(); got != p.String() {
		return fmt.Errorf("its header is of %s", got)
	}
	if keys.Empty() {
		return nil
	}
	return keys.checkSignatures(signatures, h, r)
}

// identity returns the package's text as in packaging.Package.
func (h *header) identity() string {
	epoch := ""
	if n, ok := h.number(tagEpoch); ok {
		epoch = fmt.Sprint(n)
	}
	p := packaging.Package{Name: h.text(tagName), Version: evr(epoch, h.text(tagVersion), h.text(tagRelease)), Arch: h.text(tagArch)}
	if _, ok := h.tags[tagSourceRPM]; !ok {
		p.Arch = "src"
	}
	return p.String()
}

// checkSignatures requires a signature over the header, which contains the payload's
// digest; or over header and payload, as in older packages.
func (k Keys) checkSignatures(signatures, h *header, payload io.Reader) error {
	over := []byte(nil)
	for _, t := range []uint32{signatureRSA, signatureDSA} {
		if over == nil {
			over = signatures.bytes(t)
		}
	}
	if digest := h.payloadDigest(); over != nil && digest != nil {
		if err := k.checkSignature(bytes.NewReader(h.raw), over); err != nil {
			return err
		}
		if _, err := io.Copy(digest.Hash, payload); err != nil {
			return err
		}
		if got := hex.EncodeToString(digest.Sum(nil)); got != digest.want {
			return fmt.Errorf("its payload has the digest %s, expected %s", got, digest.want)
		}
		return nil
	}
	for _, t := range []uint32{signaturePGP, signatureGPG} {
		if s := signatures.bytes(t); s != nil {
			return k.checkSignature(io.MultiReader(bytes.NewReader(h.raw), payload), s)
		}
	}
	if over != nil {
		return errors.New("its signature does not cover its payload")
	}
	return errors.New("it is not signed")
}

func (k Keys) checkSignature(content io.Reader, signature []byte) error {
	parsed, err := packet.Read(bytes.NewReader(signature))
	if err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	s, ok := parsed.(*packet.Signature)
	if !ok {
		return errors.New("signature: not a valid signature")
	}
	config := &packet.Config{Time: func() time.Time { return s.CreationTime }}
	if _, err := openpgp.CheckDetachedSignature(k.list, content, bytes.NewReader(signature), config); err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	return nil
}

// payloadDigest is the expected digest of the payload.
type payloadDigest struct {
	hash.Hash
	want string
}

// payloadDigest returns nil if the header has no trusted digest.
func (h *header) payloadDigest() *payloadDigest {
	algorithm, _ := h.number(tagPayloadDigestAlgorithm)
	kind := map[uint32]string{8: "sha256", 9: "sha384", 10: "sha512"}[algorithm] // RFC 9580, 9.5
	want := h.text(tagPayloadDigest)
	if kind == "" || want == "" {
		return nil
	}
	return &payloadDigest{hashes[kind](), want}
}

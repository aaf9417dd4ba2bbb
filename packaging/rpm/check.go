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

// Check reads the file of a package to its end and tells whether it is that
// package: of the size and checksum that the metadata has, with its name, version
// and architecture inside and, where there are keys, signed by one of them. Keys had
// to be valid when they signed, as rpm has it: a distribution's packages outlive
// its keys.
func Check(r io.Reader, p *packaging.Package, keys Keys) error {
	want := sum{"sha256", p.SHA256}
	if p.SHA256 == "" {
		want = sum{"sha512", p.SHA512}
	}
	whole := newChecked(r, want, p.Size, p.Size)
	wrong := checkFile(whole, p, keys)
	// That the bytes are others explains whatever they look like, and comes first.
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
		return fmt.Errorf("it is %s by what it says inside", got)
	}
	if keys.Empty() {
		return nil
	}
	return keys.checkSignatures(signatures, h, r)
}

// identity names the package as packaging.Package does.
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

// checkSignatures wants a signature over the header, which has the payload's
// digest; or over both, as older packages have it.
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
			return fmt.Errorf("its payload has the digest %s, and not %s", got, digest.want)
		}
		return nil
	}
	for _, t := range []uint32{signaturePGP, signatureGPG} {
		if s := signatures.bytes(t); s != nil {
			return k.checkSignature(io.MultiReader(bytes.NewReader(h.raw), payload), s)
		}
	}
	if over != nil {
		return errors.New("its signature says nothing of its payload")
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
		return errors.New("signature: it is none")
	}
	config := &packet.Config{Time: func() time.Time { return s.CreationTime }}
	if _, err := openpgp.CheckDetachedSignature(k.list, content, bytes.NewReader(signature), config); err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	return nil
}

// payloadDigest is what the payload has to have.
type payloadDigest struct {
	hash.Hash
	want string
}

// payloadDigest gives nil where the header has none that is trusted.
func (h *header) payloadDigest() *payloadDigest {
	algorithm, _ := h.number(tagPayloadDigestAlgorithm)
	kind := map[uint32]string{8: "sha256", 9: "sha384", 10: "sha512"}[algorithm] // RFC 9580, 9.5
	want := h.text(tagPayloadDigest)
	if kind == "" || want == "" {
		return nil
	}
	return &payloadDigest{hashes[kind](), want}
}

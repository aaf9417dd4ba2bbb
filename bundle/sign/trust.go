package sign

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// maxBundle bounds what is taken for a Sigstore bundle: the whole slot of an archive.
const maxBundle = 256 << 10

// Trust says whose signatures count.
type Trust struct {
	who      string // for errors and reports
	keyID    string // of the public key; "" for an identity
	verifier *verify.Verifier
	policy   verify.PolicyOption
}

// TrustKey trusts the holder of the key whose public half is given, in PEM form.
func TrustKey(public []byte) (*Trust, error) {
	v, id, err := loadVerifier(public)
	if err != nil {
		return nil, err
	}
	// A key signs without a time: it is good until nobody trusts it any more.
	key := root.NewExpiringKey(v, time.Time{}, time.Time{})
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return key, nil })
	verifier, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
	if err != nil {
		return nil, fault(ErrKeyFile, err, "the public key cannot be used")
	}
	return &Trust{who: "key " + id, keyID: id, verifier: verifier, policy: verify.WithKey()}, nil
}

// Identity is who signs without a key of his own: both exactly as they stand
// in the certificate.
type Identity struct {
	Name   string // a mail address, or the address of a workflow
	Issuer string // of the OpenID Connect token
}

// TrustIdentity trusts one identity, as far as the authorities and logs of a
// trusted root (the content of Sigstore's trusted_root.json) vouch for it: the
// certificate has to be logged, and so has the signature, with a time.
func TrustIdentity(trustedRoot []byte, id Identity) (*Trust, error) {
	if id.Name == "" || id.Issuer == "" {
		return nil, fault(ErrIdentity, nil, "an identity needs both a name and an issuer")
	}
	material, err := root.NewTrustedRootFromJSON(trustedRoot)
	if err != nil {
		return nil, fault(ErrTrustedRoot, err, "not a trusted root")
	}
	verifier, err := verify.NewVerifier(material, verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1),
		verify.WithSignedCertificateTimestamps(1), verify.WithoutStatementPredicate())
	if err != nil {
		return nil, fault(ErrTrustedRoot, err, "the trusted root cannot be used")
	}
	wanted, err := verify.NewShortCertificateIdentity(id.Issuer, "", id.Name, "")
	if err != nil {
		return nil, fault(ErrIdentity, err, "identity %q of %q", id.Name, id.Issuer)
	}
	return &Trust{who: id.Name + " (" + id.Issuer + ")", verifier: verifier, policy: verify.WithCertificateIdentity(wanted)}, nil
}

// String names who is trusted.
func (t *Trust) String() string { return t.who }

// Verify reads a signature that Sign or cosign made, and gives the statement if
// the signature counts. What the statement is about and says is the caller's to
// judge: see Statement.About and PredicateType.
func (t *Trust) Verify(text []byte) (Statement, error) {
	s, _, err := t.verify(text)
	return s, err
}

func (t *Trust) verify(text []byte) (Statement, *bundle.Bundle, error) {
	b, err := parse(text)
	if err != nil {
		return Statement{}, nil, err
	}
	payload, err := envelopeOf(b)
	if err != nil {
		return Statement{}, nil, err
	}
	bad := t.check(b, verify.WithoutArtifactUnsafe()) // what it is about is told from it later
	s, err := decodeStatement(payload)
	if bad != nil && (err == nil || errors.Is(bad, ErrKey) || errors.Is(bad, ErrIdentity)) {
		return Statement{}, nil, bad
	}
	return s, b, err
}

// Peek reads the statement of a signature without asking whose it is: nothing
// that it says counts.
func Peek(text []byte) (Statement, error) {
	b, err := parse(text)
	if err != nil {
		return Statement{}, err
	}
	payload, err := envelopeOf(b)
	if err != nil {
		return Statement{}, err
	}
	return decodeStatement(payload)
}

// Keyless tells whether each signature of a slot bears a certificate, and none a
// key: who wants to check them needs an identity. Lines that are no signature do
// not count, and nothing is verified.
func Keyless(signatures []byte) bool {
	found := false
	for text := range bytes.Lines(signatures) {
		b, err := parse(bytes.TrimSpace(text))
		if err != nil {
			continue
		}
		content, err := b.VerificationContent()
		if err != nil {
			continue
		}
		if content.Certificate() == nil {
			return false
		}
		found = true
	}
	return found
}

// VerifyAbout is Verify, of a statement of one predicate type that has to be about
// a digest, as in sha256:<hex>.
func (t *Trust) VerifyAbout(text []byte, predicateType, digest string) (Statement, error) {
	raw, err := rawDigest(digest)
	if err != nil {
		return Statement{}, err
	}
	s, b, err := t.verify(text)
	switch {
	case err != nil:
		return s, err
	case s.PredicateType != predicateType:
		return s, fault(ErrPredicateType, nil, "it says %.120q of something, not %q", s.PredicateType, predicateType)
	case !s.About(digest):
		return s, fault(ErrSubject, nil, "it is good, and about %s, not about %.80s", subjects(s), digest)
	}
	return s, t.check(b, verify.WithArtifactDigest("sha256", raw))
}

// VerifyDigest checks a detached signature of the file with a digest.
func (t *Trust) VerifyDigest(text []byte, digest string) error {
	raw, err := rawDigest(digest)
	if err != nil {
		return err
	}
	b, err := parse(text)
	if err != nil {
		return err
	}
	m := b.GetMessageSignature()
	if m == nil {
		return fault(ErrFormat, nil, "it holds no signature of a file")
	}
	if got := m.GetMessageDigest().GetDigest(); !bytes.Equal(got, raw) {
		return fault(ErrSubject, nil, "it is of a file with the digest sha256:%.32x, not %s", got, digest)
	}
	return t.check(b, verify.WithArtifactDigest("sha256", raw))
}

// parse reads a Sigstore bundle of version 0.3.
func parse(text []byte) (*bundle.Bundle, error) {
	if len(text) > maxBundle {
		return nil, fault(ErrFormat, nil, "%d bytes are too many for a Sigstore bundle", len(text))
	}
	var b bundle.Bundle
	if err := b.UnmarshalJSON(text); err != nil {
		return nil, fault(ErrFormat, err, "not a Sigstore bundle")
	}
	if version, err := b.Version(); err != nil || version != "v0.3" {
		return nil, fault(ErrFormat, err, "a Sigstore bundle of version %.20q, not v0.3", version)
	}
	return &b, nil
}

// envelopeOf gives what an envelope holds. Its signature is not checked yet.
func envelopeOf(b *bundle.Bundle) ([]byte, error) {
	envelope := b.GetDsseEnvelope()
	if envelope == nil {
		return nil, fault(ErrFormat, nil, "it holds no statement")
	}
	if n := len(envelope.GetSignatures()); n != 1 {
		return nil, fault(ErrCount, nil, "%d signatures in one envelope, not one", n)
	}
	if got := envelope.GetPayloadType(); got != PayloadType {
		return nil, fault(ErrPayloadType, nil, "what was signed is a %.120q, not a %q", got, PayloadType)
	}
	return envelope.GetPayload(), nil
}

// check has sigstore-go judge the signature, and says what is wrong in words of ours.
func (t *Trust) check(b *bundle.Bundle, artifact verify.ArtifactPolicyOption) error {
	content, err := b.VerificationContent()
	if err != nil {
		return fault(ErrFormat, err, "nothing says who signed")
	}
	keyless := content.Certificate() != nil
	switch {
	case t.keyID != "" && keyless:
		return fault(ErrKey, nil, "signed with a certificate, not with %s", t.who)
	case t.keyID == "" && !keyless:
		return fault(ErrIdentity, nil, "signed with a key, not by %s", t.who)
	}
	_, err = t.verifier.Verify(b, verify.NewPolicy(artifact, t.policy))
	var other *verify.ErrNoMatchingCertificateIdentity
	switch {
	case err == nil:
		return nil
	case errors.As(err, &other):
		return fault(ErrIdentity, err, "not signed by %s", t.who)
	case keyless:
		return fault(ErrProof, err, "nothing proves that %s signed", t.who)
	case content.PublicKey().Hint() != t.keyID: // what it says of itself decides no more than the wording
		return fault(ErrKey, nil, "signed with the key %.60q, not with %s", content.PublicKey().Hint(), t.who)
	}
	return fault(ErrInvalid, err, "not what %s signed", t.who)
}

// subjects names what a statement is about, for an error.
func subjects(s Statement) string {
	if sum, ok := s.Subject[0].Digest["sha256"]; ok && len(s.Subject) == 1 {
		return fmt.Sprintf("sha256:%.64s", sum)
	}
	return fmt.Sprintf("%d others", len(s.Subject))
}

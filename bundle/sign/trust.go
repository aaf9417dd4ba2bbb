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

// maxBundle is the maximum size of a Sigstore bundle: the size of an archive's signature
// slot.
const maxBundle = 256 << 10

// Trust is a trusted public key or identity.
type Trust struct {
	who      string // the key or identity, for errors and reports
	keyID    string // of the public key; "" for an identity
	verifier *verify.Verifier
	policy   verify.PolicyOption
}

// TrustKey returns the Trust for a public key in PEM form.
func TrustKey(public []byte) (*Trust, error) {
	v, id, err := loadVerifier(public)
	if err != nil {
		return nil, err
	}
	// A signature with a key has no time, so the key does not expire.
	key := root.NewExpiringKey(v, time.Time{}, time.Time{})
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return key, nil })
	verifier, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps(), verify.WithoutStatementPredicate())
	if err != nil {
		return nil, fault(ErrKeyFile, err, "the public key cannot be used")
	}
	return &Trust{who: "key " + id, keyID: id, verifier: verifier, policy: verify.WithKey()}, nil
}

// Identity is the identity of a keyless signer. Both fields must match the certificate
// exactly.
type Identity struct {
	Name   string // an email address, or the URL of a workflow
	Issuer string // issuer of the OpenID Connect token
}

// TrustIdentity returns the Trust for one identity, verified with the authorities and logs
// of a trusted root (the content of Sigstore's trusted_root.json). The certificate must be
// in a certificate transparency log, and the signature in a transparency log with a time.
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

// String returns the trusted key or identity.
func (t *Trust) String() string { return t.who }

// Verify verifies a signature created by Sign or cosign and returns its statement. The
// caller must check subject and predicate type: see Statement.About and PredicateType.
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
	bad := t.check(b, verify.WithoutArtifactUnsafe()) // the subject is checked later
	s, err := decodeStatement(payload)
	if bad != nil && (err == nil || errors.Is(bad, ErrKey) || errors.Is(bad, ErrIdentity)) {
		return Statement{}, nil, bad
	}
	return s, b, err
}

// Peek returns the statement of a signature without verifying it. The content is untrusted.
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

// Keyless reports whether every signature in a slot has a certificate and none a key, so
// that verification requires an identity. Lines that are not signatures are ignored, and
// nothing is verified.
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

// VerifyAbout is like Verify, for a statement with this predicate type about this digest,
// in the form sha256:<hex>.
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
		return s, fault(ErrPredicateType, nil, "its statement has the predicate type %.120q, not %q", s.PredicateType, predicateType)
	case !s.About(digest):
		return s, fault(ErrSubject, nil, "it is valid, but its subject is %s, not %.80s", subjects(s), digest)
	}
	return s, t.check(b, verify.WithArtifactDigest("sha256", raw))
}

// VerifyDigest verifies a detached signature of the file with this digest.
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
		return fault(ErrFormat, nil, "it contains no signature of a file")
	}
	if got := m.GetMessageDigest().GetDigest(); !bytes.Equal(got, raw) {
		return fault(ErrSubject, nil, "it signs a file with the digest sha256:%.32x, not %s", got, digest)
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

// envelopeOf returns the payload of a bundle's envelope, whose signature is not verified
// yet.
func envelopeOf(b *bundle.Bundle) ([]byte, error) {
	envelope := b.GetDsseEnvelope()
	if envelope == nil {
		return nil, fault(ErrFormat, nil, "it contains no statement")
	}
	if n := len(envelope.GetSignatures()); n != 1 {
		return nil, fault(ErrCount, nil, "%d signatures in one envelope, expected one", n)
	}
	if got := envelope.GetPayloadType(); got != PayloadType {
		return nil, fault(ErrPayloadType, nil, "the payload has the type %.120q, not %q", got, PayloadType)
	}
	return envelope.GetPayload(), nil
}

// check verifies the signature with sigstore-go and describes a failure with a code.
func (t *Trust) check(b *bundle.Bundle, artifact verify.ArtifactPolicyOption) error {
	content, err := b.VerificationContent()
	if err != nil {
		return fault(ErrFormat, err, "the signature names neither a key nor a certificate")
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
		return fault(ErrProof, err, "the signature of %s cannot be proved", t.who)
	case content.PublicKey().Hint() != t.keyID: // the untrusted hint only selects the error message
		return fault(ErrKey, nil, "signed with the key %.60q, not with %s", content.PublicKey().Hint(), t.who)
	}
	return fault(ErrInvalid, err, "not a valid signature of %s", t.who)
}

// subjects lists the subjects of a statement for an error.
func subjects(s Statement) string {
	if sum, ok := s.Subject[0].Digest["sha256"]; ok && len(s.Subject) == 1 {
		return fmt.Sprintf("sha256:%.64s", sum)
	}
	return fmt.Sprintf("%d others", len(s.Subject))
}

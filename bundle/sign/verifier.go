package sign

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
)

// maxSignatures is the maximum number of signatures of one bundle.
const maxSignatures = 64

// Verifier implements bundle.Verifier: a signature is accepted if one of these accepts it.
type Verifier []*Trust

// Verify implements bundle.Verifier. It checks every line of the slot. If one line is
// accepted, rejected lines are ignored, so that several people can sign. Otherwise the
// error has the reason for each line.
func (v Verifier) Verify(ctx context.Context, root v1.Descriptor, signatures []byte) ([]bundle.AcceptedSignature, error) {
	var vouchers []bundle.AcceptedSignature
	var refused []error
	made := map[string]*bundle.Provenance{} // by signer
	n := 0
	for text := range bytes.Lines(signatures) {
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if n++; n > maxSignatures {
			return nil, fault(ErrFormat, nil, "more than %d signatures", maxSignatures)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		voucher, err := v.claim(text, root.Digest.String())
		if errors.Is(err, ErrPredicateType) {
			if by, p := v.provenance(text, root.Digest.String()); p != nil {
				made[by] = p
			}
		}
		if err != nil {
			refused = append(refused, fmt.Errorf("signature %d: %w", n, err))
			continue
		}
		vouchers = append(vouchers, voucher)
	}
	switch {
	case n == 0:
		return nil, fault(ErrCount, nil, "it contains no signature")
	case len(vouchers) == 0:
		return nil, errors.Join(refused...)
	}
	for i, x := range vouchers {
		vouchers[i].Provenance = made[x.Signer]
	}
	return vouchers, nil
}

// claim verifies one line with each Trust; the first that accepts it determines the result.
func (v Verifier) claim(text []byte, root string) (bundle.AcceptedSignature, error) {
	var refused []error
	for _, t := range v {
		c, err := t.claim(text, root)
		if err == nil {
			return bundle.AcceptedSignature{Signer: t.String(), Claim: c}, nil
		}
		refused = append(refused, err)
	}
	if len(refused) == 0 {
		return bundle.AcceptedSignature{}, fault(ErrKey, nil, "no key or identity is trusted")
	}
	return bundle.AcceptedSignature{}, errors.Join(refused...)
}

func (t *Trust) claim(text []byte, root string) (bundle.Claim, error) {
	var c bundle.Claim
	s, err := t.VerifyAbout(text, bundle.TypeClaim, root)
	if err != nil {
		return c, err
	}
	return c, s.Decode(&c)
}

// provenance returns the provenance in a line that a trusted signer signed.
func (v Verifier) provenance(text []byte, root string) (string, *bundle.Provenance) {
	for _, t := range v {
		s, err := t.VerifyAbout(text, bundle.TypeProvenance, root)
		if err != nil {
			continue
		}
		var p bundle.Provenance
		if err := json.Unmarshal(s.Predicate, &p); err == nil { // unknown fields are allowed: no decision depends on it
			return t.String(), &p
		}
	}
	return "", nil
}

// SignProvenance signs the provenance of a bundle.
func (s *Signer) SignProvenance(root, cluster string, p bundle.Provenance) ([]byte, error) {
	st, err := NewStatement(cluster, root, bundle.TypeProvenance, p)
	if err != nil {
		return nil, err
	}
	return s.Sign(st)
}

// SignRoot signs a claim about a bundle's root.
func (s *Signer) SignRoot(root string, c bundle.Claim) ([]byte, error) {
	st, err := NewStatement(c.Cluster, root, bundle.TypeClaim, c)
	if err != nil {
		return nil, err
	}
	return s.Sign(st)
}

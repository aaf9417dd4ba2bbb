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

// maxSignatures is how many signatures of one bundle are looked at.
const maxSignatures = 64

// Verifier answers a bundle.Policy: a signature that one of these trusts counts.
type Verifier []*Trust

// Verify implements bundle.Verifier. Every line of the slot is looked at. Lines
// that count for nothing are passed over where another one does, so that several
// people can sign; the error names the reason of each.
func (v Verifier) Verify(ctx context.Context, root v1.Descriptor, signatures []byte) ([]bundle.Voucher, error) {
	var vouchers []bundle.Voucher
	var refused []error
	made := map[string]*bundle.Provenance{} // by who says so
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
		return nil, fault(ErrCount, nil, "no signature at all")
	case len(vouchers) == 0:
		return nil, errors.Join(refused...)
	}
	for i, x := range vouchers {
		vouchers[i].Provenance = made[x.By]
	}
	return vouchers, nil
}

// claim checks one line: the first trust that it convinces decides.
func (v Verifier) claim(text []byte, root string) (bundle.Voucher, error) {
	var refused []error
	for _, t := range v {
		c, err := t.claim(text, root)
		if err == nil {
			return bundle.Voucher{By: t.String(), Claim: c}, nil
		}
		refused = append(refused, err)
	}
	if len(refused) == 0 {
		return bundle.Voucher{}, fault(ErrKey, nil, "nobody is trusted")
	}
	return bundle.Voucher{}, errors.Join(refused...)
}

func (t *Trust) claim(text []byte, root string) (bundle.Claim, error) {
	var c bundle.Claim
	s, err := t.VerifyAbout(text, bundle.TypeClaim, root)
	if err != nil {
		return c, err
	}
	return c, s.Decode(&c)
}

// provenance reads a line that says how the bundle was made, if somebody who is
// trusted signed it.
func (v Verifier) provenance(text []byte, root string) (string, *bundle.Provenance) {
	for _, t := range v {
		s, err := t.VerifyAbout(text, bundle.TypeProvenance, root)
		if err != nil {
			continue
		}
		var p bundle.Provenance
		if err := json.Unmarshal(s.Predicate, &p); err == nil { // its form may have more: nothing is decided by it
			return t.String(), &p
		}
	}
	return "", nil
}

// SignProvenance makes a signature of how a bundle was made.
func (s *Signer) SignProvenance(root, cluster string, p bundle.Provenance) ([]byte, error) {
	st, err := NewStatement(cluster, root, bundle.TypeProvenance, p)
	if err != nil {
		return nil, err
	}
	return s.Sign(st)
}

// SignRoot makes the signature of a bundle: what c claims of its root.
func (s *Signer) SignRoot(root string, c bundle.Claim) ([]byte, error) {
	st, err := NewStatement(c.Cluster, root, bundle.TypeClaim, c)
	if err != nil {
		return nil, err
	}
	return s.Sign(st)
}

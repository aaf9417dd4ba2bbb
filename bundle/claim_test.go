package bundle

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/archive"
)

// says is a Verifier that accepts a claim.
type says Claim

func (s says) Verify(context.Context, v1.Descriptor, []byte) ([]AcceptedSignature, error) {
	return []AcceptedSignature{{Signer: "somebody", Claim: Claim(s)}}, nil
}

// TestClaimAgreesWithTheLock: a signature that counts has to say of a bundle what
// its lock does, and may ask for a newer program.
func TestClaimAgreesWithTheLock(t *testing.T) {
	w := newWorld(t)
	path := w.build(t, 2)
	if err := archive.WriteSignatures(path, []byte("{\"a\":1}\n")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Claim)
		kubexm string
		want   error
	}{
		"the same":            {func(*Claim) {}, "1.0.0", nil},
		"cluster":             {func(c *Claim) { c.Cluster = "other" }, "", TrustClaim},
		"version":             {func(c *Claim) { c.Version = "v1.0.0" }, "", TrustClaim},
		"serial":              {func(c *Claim) { c.Serial++ }, "", TrustClaim},
		"created":             {func(c *Claim) { c.Created = c.Created.Add(time.Second) }, "", TrustClaim},
		"another time zone":   {func(c *Claim) { c.Created = c.Created.In(time.FixedZone("x", 3600)) }, "", nil},
		"Kubernetes versions": {func(c *Claim) { c.Kubernetes = append([]string{"v1.0.0"}, c.Kubernetes...) }, "", TrustClaim},
		"platforms":           {func(c *Claim) { c.Platforms = nil }, "", TrustClaim},
		"config":              {func(c *Claim) { c.Config = "sha256:x" }, "", TrustClaim},
		"old enough":          {func(c *Claim) { c.MinimumKubexm = "0.3.0" }, "v0.3.0", nil},
		"too old":             {func(c *Claim) { c.MinimumKubexm = "0.3.0" }, "0.2.9", TrustKubexm},
		"a build":             {func(c *Claim) { c.MinimumKubexm = "0.3.0" }, "dev", nil},
		"no version":          {func(c *Claim) { c.MinimumKubexm = "soon" }, "dev", TrustKubexm},
	} {
		t.Run(name, func(t *testing.T) {
			claim := ClaimOf(w.Lock)
			c.change(&claim)
			b, err := Open(t.Context(), path, Policy{Verifier: says(claim), Kubexm: c.kubexm})
			if c.want != nil {
				if !errors.Is(err, c.want) || !errors.Is(err, ErrUntrusted) {
					t.Errorf("%v, want %v", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(b.AcceptedSignatures) != 1 || b.Close() != nil {
				t.Errorf("vouchers %v", b.AcceptedSignatures)
			}
		})
	}
}

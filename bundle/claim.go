package bundle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

// TypeClaim is the predicate type of the statement that a bundle's signature
// signs; the statement's subject is the root.
const TypeClaim = "https://kubexm.mensylisir.io/bundle/v1"

// Claim is what the maker of a bundle says of it in a signature: enough to judge
// a bundle by before anything in it is read. All but MinimumKubexm stands in the
// lock too, and has to be the same there.
type Claim struct {
	Cluster    string    `json:"cluster"`
	Version    string    `json:"version"`    // of the cluster: the Kubernetes version of the first set
	Serial     int64     `json:"serial"`     // the lock's: it only grows
	Created    time.Time `json:"created"`    // the lock's: UTC, whole seconds
	Kubernetes []string  `json:"kubernetes"` // the Kubernetes versions in it: the names of the lock's sets
	Platforms  []string  `json:"platforms"`  // as linux/amd64
	Config     string    `json:"config"`     // sha256:… of the config without its secrets
	// MinimumKubexm is the oldest version of kubexm that is to use the bundle; "" is any.
	MinimumKubexm string `json:"minimumKubexm,omitempty"`
}

// ClaimOf is what a signature says of the bundle that l makes.
func ClaimOf(l *manifest.Lock) Claim {
	c := Claim{
		Cluster: l.Cluster, Serial: l.Serial, Created: l.Created.UTC(), Config: l.Config,
		Kubernetes: []string{}, Platforms: []string{},
	}
	for _, s := range l.Sets {
		c.Kubernetes = append(c.Kubernetes, s.Name)
	}
	if len(c.Kubernetes) > 0 {
		c.Version = c.Kubernetes[0]
	}
	for _, p := range l.Platforms {
		c.Platforms = append(c.Platforms, p.String())
	}
	return c
}

// agrees compares a claim with the lock that the signed root leads to.
func (c Claim) agrees(l *manifest.Lock) error {
	is := ClaimOf(l)
	for _, x := range []struct {
		what       string
		said, read any
	}{
		{"cluster", c.Cluster, is.Cluster},
		{"version", c.Version, is.Version},
		{"serial", c.Serial, is.Serial},
		{"created", c.Created.UTC(), is.Created},
		{"config", c.Config, is.Config},
	} {
		if x.said != x.read {
			return &TrustError{Code: TrustClaim, Detail: fmt.Sprintf("its signature says %s %.80q, its lock %.80q", x.what, fmt.Sprint(x.said), fmt.Sprint(x.read))}
		}
	}
	if !slices.Equal(c.Kubernetes, is.Kubernetes) || !slices.Equal(c.Platforms, is.Platforms) {
		return &TrustError{Code: TrustClaim, Detail: fmt.Sprintf("its signature says Kubernetes %.80q for %.80q, its lock %.80q for %.80q",
			c.Kubernetes, c.Platforms, is.Kubernetes, is.Platforms)}
	}
	return nil
}

// Voucher is a signature that counts.
type Voucher struct {
	By    string `json:"by"` // whose key or identity
	Claim Claim  `json:"claim"`
	// Provenance is what the same maker signed of how the bundle was made; nil where
	// he said nothing.
	Provenance *Provenance `json:"provenance,omitempty"`
}

// TrustCode says why a Policy refuses a bundle, in a word that stays the same
// between versions. What is wrong with one signature has codes of bundle/sign's.
type TrustCode string

// Error gives the code's word.
func (c TrustCode) Error() string { return string(c) }

// The codes; docs/trust.md explains each.
const (
	TrustUnsigned  TrustCode = "bundle-unsigned"  // there is no signature, and nothing allows that
	TrustNobody    TrustCode = "bundle-untrusted" // there is one, and nobody said whose count
	TrustSignature TrustCode = "bundle-signature" // none of the signatures counts
	TrustClaim     TrustCode = "bundle-claim"     // a signature that counts says other things than the lock
	TrustKubexm    TrustCode = "bundle-kubexm"    // it asks for a newer version of kubexm
	TrustSerial    TrustCode = "bundle-serial"    // the cluster has had a newer bundle already
	// TrustSerialUnknown is for a cluster that does not tell which bundles it has had.
	TrustSerialUnknown TrustCode = "bundle-serial-unknown"
)

// TrustError is why a Policy refuses a bundle. errors.Is(err, ErrUntrusted) holds.
type TrustError struct {
	Code   TrustCode
	Detail string // lower case; may be empty where Err says all
	Err    error  // of each signature; may be nil
}

func (e *TrustError) Error() string {
	detail := e.Detail
	if e.Err != nil {
		detail = cmp.Or(detail, "no signature counts") + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%v: %s (%s)", ErrUntrusted, detail, e.Code)
}

// Unwrap gives ErrUntrusted, the code and the cause to errors.Is and errors.As.
func (e *TrustError) Unwrap() []error {
	out := []error{ErrUntrusted, e.Code}
	if e.Err != nil {
		out = append(out, e.Err)
	}
	return out
}

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

// Claim is what the signer states about a bundle, for a decision before the bundle's
// content is read. All fields except MinimumKubexm are also in the lock and must match it.
type Claim struct {
	Cluster    string    `json:"cluster"`
	Version    string    `json:"version"`    // of the cluster: the Kubernetes version of the first set
	Serial     int64     `json:"serial"`     // the lock's; increases with every lock
	Created    time.Time `json:"created"`    // the lock's; UTC, in seconds
	Kubernetes []string  `json:"kubernetes"` // the Kubernetes versions in it: the names of the lock's sets
	Platforms  []string  `json:"platforms"`  // for example linux/amd64
	Config     string    `json:"config"`     // sha256:… of the config without its secrets
	// MinimumKubexm is the oldest version of kubexm that may use the bundle; "" allows any.
	MinimumKubexm string `json:"minimumKubexm,omitempty"`
}

// ClaimOf returns the claim for the bundle of l.
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

// agrees compares a claim with the lock of the signed root.
func (c Claim) agrees(l *manifest.Lock) error {
	is := ClaimOf(l)
	for _, x := range []struct {
		what            string
		claimed, locked any
	}{
		{"cluster", c.Cluster, is.Cluster},
		{"version", c.Version, is.Version},
		{"serial", c.Serial, is.Serial},
		{"created", c.Created.UTC(), is.Created},
		{"config", c.Config, is.Config},
	} {
		if x.claimed != x.locked {
			return &TrustError{Code: TrustClaim, Detail: fmt.Sprintf("its signature states %s %.80q, its lock %.80q", x.what, fmt.Sprint(x.claimed), fmt.Sprint(x.locked))}
		}
	}
	if !slices.Equal(c.Kubernetes, is.Kubernetes) || !slices.Equal(c.Platforms, is.Platforms) {
		return &TrustError{Code: TrustClaim, Detail: fmt.Sprintf("its signature states Kubernetes %.80q for %.80q, its lock %.80q for %.80q",
			c.Kubernetes, c.Platforms, is.Kubernetes, is.Platforms)}
	}
	return nil
}

// AcceptedSignature is an accepted signature.
type AcceptedSignature struct {
	Signer string `json:"by"` // key or identity of the signer
	Claim  Claim  `json:"claim"`
	// Provenance is the provenance that the same signer signed; nil if there is none.
	Provenance *Provenance `json:"provenance,omitempty"`
}

// TrustCode identifies why a Policy refuses a bundle. Codes stay the same between versions.
// bundle/sign has the codes for problems with a single signature.
type TrustCode string

// Error returns the code.
func (c TrustCode) Error() string { return string(c) }

// The codes; docs/trust.md explains each.
const (
	TrustUnsigned  TrustCode = "bundle-unsigned"  // no signature, and unsigned bundles are not allowed
	TrustNobody    TrustCode = "bundle-untrusted" // signed, but no trusted key or identity is configured
	TrustSignature TrustCode = "bundle-signature" // no signature is accepted
	TrustClaim     TrustCode = "bundle-claim"     // an accepted signature contradicts the lock
	TrustKubexm    TrustCode = "bundle-kubexm"    // it requires a newer version of kubexm
	TrustSerial    TrustCode = "bundle-serial"    // the cluster was already installed from a newer bundle
	// TrustSerialUnknown: the cluster does not report which bundles it was installed from.
	TrustSerialUnknown TrustCode = "bundle-serial-unknown"
)

// TrustError reports why a Policy refuses a bundle. errors.Is(err, ErrUntrusted) is true.
type TrustError struct {
	Code   TrustCode
	Detail string // lower case; may be empty if Err is set
	Err    error  // the errors of all signatures; may be nil
}

func (e *TrustError) Error() string {
	detail := e.Detail
	if e.Err != nil {
		detail = cmp.Or(detail, "no signature is accepted") + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%v: %s (%s)", ErrUntrusted, detail, e.Code)
}

// Unwrap returns ErrUntrusted, the code and the cause.
func (e *TrustError) Unwrap() []error {
	out := []error{ErrUntrusted, e.Code}
	if e.Err != nil {
		out = append(out, e.Err)
	}
	return out
}

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// The lifetimes of certificates; kubeadm uses the same.
const (
	AuthorityLifetime = 10 * 365 * 24 * time.Hour
	LeafLifetime      = 365 * 24 * time.Hour
)

// early is how long before its creation a certificate becomes valid: clocks of hosts
// differ, and a certificate that is not yet valid is rejected.
const early = 5 * time.Minute

// Pair is a certificate with its private key.
type Pair struct {
	Certificate *x509.Certificate
	Key         *ecdsa.PrivateKey
}

// Request describes a leaf certificate.
type Request struct {
	CommonName    string
	Organizations []string // Kubernetes treats them as groups
	Names         []string // subject alternative names: DNS names and IP addresses
	Server        bool
	Client        bool
}

// NewAuthority creates a self-signed CA.
func NewAuthority(commonName string, now time.Time) (Pair, error) {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-early),
		NotAfter:              now.Add(AuthorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(t, nil)
}

// Issue creates a leaf certificate that is signed by p, an authority. It does not outlive p.
func (p Pair) Issue(r Request, now time.Time) (Pair, error) {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: r.CommonName, Organization: r.Organizations},
		NotBefore:             now.Add(-early),
		NotAfter:              now.Add(LeafLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
	}
	if t.NotAfter.After(p.Certificate.NotAfter) {
		t.NotAfter = p.Certificate.NotAfter
	}
	for _, n := range r.Names {
		if ip := net.ParseIP(n); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, n)
		}
	}
	if r.Server {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if r.Client {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	leaf, err := sign(t, &p)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate for %s: %w", r.CommonName, err)
	}
	return leaf, nil
}

func sign(t *x509.Certificate, ca *Pair) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	if t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return Pair{}, err
	}
	parent, signer := t, key
	if ca != nil {
		parent, signer = ca.Certificate, ca.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, err
	}
	c, err := x509.ParseCertificate(der)
	return Pair{Certificate: c, Key: key}, err
}

// Matches reports whether p matches r at the given time: signed by ca, with exactly the
// same subject, names and usages, and valid for at least another tenth of its lifetime.
func (p Pair) Matches(r Request, ca Pair, now time.Time) bool {
	c := p.Certificate
	if c.CheckSignatureFrom(ca.Certificate) != nil || c.Subject.CommonName != r.CommonName || !slices.Equal(c.Subject.Organization, r.Organizations) {
		return false
	}
	var names []string
	names = append(names, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	want := slices.Clone(r.Names)
	for i, n := range want {
		if ip := net.ParseIP(n); ip != nil {
			want[i] = ip.String()
		}
	}
	slices.Sort(names)
	slices.Sort(want)
	left := c.NotAfter.Sub(now)
	return slices.Equal(names, want) && left > c.NotAfter.Sub(c.NotBefore)/10 && now.After(c.NotBefore) &&
		slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth) == r.Server &&
		slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth) == r.Client
}

// PublicKeyHash returns the hash of a CA's public key, for kubeadm's
// --discovery-token-ca-cert-hash.
func PublicKeyHash(c *x509.Certificate) string {
	h := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(h[:])
}

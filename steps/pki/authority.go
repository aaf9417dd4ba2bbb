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

// The lifetimes of certificates, as kubeadm has them.
const (
	AuthorityLifetime = 10 * 365 * 24 * time.Hour
	LeafLifetime      = 365 * 24 * time.Hour
)

// early is how far before now a certificate begins: clocks of a site differ a
// little, and a certificate that is not valid yet is refused.
const early = 5 * time.Minute

// Pair is a certificate with its private key.
type Pair struct {
	Certificate *x509.Certificate
	Key         *ecdsa.PrivateKey
}

// Request says what a leaf certificate is for.
type Request struct {
	CommonName    string
	Organizations []string // groups, as Kubernetes reads them
	Names         []string // DNS names and IP addresses that a server answers to
	Server        bool
	Client        bool
}

// NewAuthority makes a self-signed CA.
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

// Issue makes a leaf certificate that ca signs.
func (ca Pair) Issue(r Request, now time.Time) (Pair, error) {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: r.CommonName, Organization: r.Organizations},
		NotBefore:             now.Add(-early),
		NotAfter:              now.Add(LeafLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
	}
	if t.NotAfter.After(ca.Certificate.NotAfter) {
		t.NotAfter = ca.Certificate.NotAfter
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
	p, err := sign(t, &ca)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate for %s: %w", r.CommonName, err)
	}
	return p, nil
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

// Answers tells whether p still serves r at the given time: signed by ca, for
// exactly these names and uses, and valid for at least a tenth of its life.
func (p Pair) Answers(r Request, ca Pair, now time.Time) bool { //nolint:revive,staticcheck // elsewhere the receiver is the authority; here it is who answers to one
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

// PublicKeyHash is the hash of a CA's public key, as kubeadm's
// --discovery-token-ca-cert-hash takes it.
func PublicKeyHash(c *x509.Certificate) string {
	h := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(h[:])
}

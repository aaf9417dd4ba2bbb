package steptest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/mensylisir/kubexm/manifest/part"
)

// Endpoint returns a connection to a load balancer in front of the API servers. It serves
// TLS with a certificate of the cluster, and refuses connections while no API server
// answers.
func (k *Kube) Endpoint() (net.Conn, error) {
	k.mu.Lock()
	up := k.up()
	k.mu.Unlock()
	if !up {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return serving(authorityKey(), k.cluster.Spec.ControlPlaneEndpoint.Domain)
}

// Stranger returns a connection to a TLS server of the same name in another cluster.
func (k *Kube) Stranger() (net.Conn, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return serving(key, k.cluster.Spec.ControlPlaneEndpoint.Domain)
}

// serving returns a connection to a TLS server of that name, with a certificate that is
// signed by the CA with the key ca.
func serving(ca ed25519.PrivateKey, name string) (net.Conn, error) {
	block, _ := pem.Decode([]byte(authorityOf(ca)))
	parent, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, err
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, DNSNames: []string{name}, NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, public, ca)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	here, there := net.Pipe()
	server := tls.Server(there, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	go func() { // ends when the client does
		_ = server.Handshake()
		_, _ = server.Read(make([]byte, 1))
		_ = there.Close()
	}()
	return here, nil
}

// authorityKey returns the key of the cluster's CA, which is always the same.
func authorityKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) }

// reached reports whether a program on a host reaches an API server: the one of the flag
// --server, or the one that the control plane endpoint resolves to on the host.
func (k *Kube) reached(c call) bool {
	if server := c.flags["--server"]; server != "" {
		host := k.addressed(server)
		return k.serves(host) && !slices.Contains(k.Unhealthy, "kube-apiserver-"+host)
	}
	if k.stands || part.EndpointOf(k.cluster).Balanced() {
		return k.up() && k.holdsVIP()
	}
	if k.aimsAtItself(c.sim) {
		return k.up() && balancerRuns(c.sim)
	}
	return k.serves(k.aim(c.sim))
}

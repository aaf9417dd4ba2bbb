package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
)

// ErrNoAuthority is returned by TryEndpoint if ca contains no certificate.
var ErrNoAuthority = errors.New(AuthorityFile + " of the first master contains no certificate")

// tryWithin is the timeout of one connection attempt to the endpoint.
const tryWithin = 5 * time.Second

// TryEndpoint connects once from a host to the endpoint, and verifies that the server's
// certificate is signed by the CA in ca, in PEM. If another server answers, the error is a
// *tls.CertificateVerificationError.
func TryEndpoint(ctx context.Context, h *steps.Host, c *manifest.Cluster, ca []byte) error {
	return TryServer(ctx, h, c, ca, part.EndpointOf(c).At())
}

// TryServer is TryEndpoint for another address and port at which API servers of the cluster
// answer.
func TryServer(ctx context.Context, h *steps.Host, c *manifest.Cluster, ca []byte, address string) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return ErrNoAuthority
	}
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	conn, err := h.Dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	return tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: part.EndpointOf(c).Domain, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
}

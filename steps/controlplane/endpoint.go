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

// ErrNoAuthority is TryEndpoint's, for a CA that is no certificate.
var ErrNoAuthority = errors.New(AuthorityFile + " of the first master holds no certificate")

// tryWithin is how long one try to reach the endpoint takes.
const tryWithin = 5 * time.Second

// TryEndpoint asks once whether an API server answers a host at the endpoint, with a
// certificate of the CA that ca holds in PEM; the error says why not. It is a
// tls.CertificateVerificationError where somebody else answers.
func TryEndpoint(ctx context.Context, h *steps.Host, c *manifest.Cluster, ca []byte) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return ErrNoAuthority
	}
	e := part.EndpointOf(c)
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	conn, err := h.Dial(ctx, e.At())
	if err != nil {
		return err
	}
	defer conn.Close()
	return tls.Client(conn, &tls.Config{RootCAs: roots, ServerName: e.Domain, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
}

package loadbalancer

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Probe is what haproxy requests /readyz with, as PEM. It is empty where every load
// balancer host has one that is valid.
type Probe struct{ Certificate, Key []byte }

// Trusted records, by host, whether a load balancer has the cluster's CA and a valid
// certificate of its own.
var Trusted = steps.NewKey[bool]("loadbalancer.trusted")

// renewBefore is how long before its end a probe's certificate is replaced.
const renewBefore = 30 * 24 * time.Hour

// placeholders are a CA and a certificate that no API server knows. haproxy does not
// start without such files, and there is no cluster yet.
func placeholders() []op.Resource {
	pair := func() (cert, key []byte, err error) {
		p, err := pki.NewAuthority("placeholder until the cluster exists", time.Now())
		if err != nil {
			return nil, nil, err
		}
		return p.Encode()
	}
	return []op.Resource{
		op.File{Path: caFile, Body: present(caFile, func() ([]byte, error) {
			cert, _, err := pair()
			return cert, err
		})},
		op.File{Path: probeFile, Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: present(probeFile, func() ([]byte, error) {
			cert, key, err := pair()
			return slices.Concat(cert, key), err
		})},
	}
}

// present returns the content that a file has, or a new one where it does not exist.
func present(path string, create func() ([]byte, error)) func(context.Context, *steps.Host) ([]byte, error) {
	return func(ctx context.Context, h *steps.Host) ([]byte, error) {
		text, err := h.ReadFile(ctx, path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 { // empty after a loss of power
			return create()
		}
		return text, err
	}
}

// CheckTrust checks whether a load balancer host has the cluster's CA, which authority
// contains, and a certificate that it has signed.
func CheckTrust(authority steps.Key[[]byte]) steps.Step {
	return checkTrust("loadbalancer.check-trust", Dir, authority)
}

func checkTrust(name, dir string, authority steps.Key[[]byte]) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: name, Always: true, ReadOnly: true, Timeout: time.Minute, Reads: []steps.AnyKey{authority}, Writes: []steps.AnyKey{Trusted}},
		Act: func(ctx context.Context, h *steps.Host) error {
			ca, err := authority.Get(h)
			if err != nil {
				return err
			}
			ok, err := trusted(ctx, h, dir, ca, time.Now())
			if err != nil {
				return err
			}
			return Trusted.On(h.Name).Put(h, ok)
		},
	}
}

func trusted(ctx context.Context, h *steps.Host, dir string, ca []byte, now time.Time) (bool, error) {
	var texts [2][]byte
	for i, name := range []string{caName, probeName} {
		var err error
		if texts[i], err = h.ReadFile(ctx, path.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	if !bytes.Equal(texts[0], ca) {
		return false, nil
	}
	return isClient(texts[1], ca, now), nil
}

// isClient reports whether the first certificate of a PEM text is one for clients that a CA has
// signed, and that does not end soon. Otherwise it is replaced.
func isClient(text, ca []byte, now time.Time) bool {
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err = cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now.Add(renewBefore), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// authorityText returns the cluster's CA.
func authorityText(authority steps.Key[[]byte]) func(context.Context, *steps.Host) ([]byte, error) {
	return func(_ context.Context, h *steps.Host) ([]byte, error) {
		ca, err := authority.Get(h)
		if err != nil {
			return nil, op.Later(err)
		}
		return ca, nil
	}
}

// probeText returns the probe's certificate and key: those in the file at a path, if they are
// valid, otherwise those that probe carries.
func probeText(at string, probe steps.Key[Probe]) func(context.Context, *steps.Host) ([]byte, error) {
	return func(ctx context.Context, h *steps.Host) ([]byte, error) {
		ok, err := Trusted.On(h.Name).Get(h)
		if err != nil {
			return nil, op.Later(err)
		}
		if ok {
			return h.ReadFile(ctx, at)
		}
		p, err := probe.Get(h)
		if err != nil {
			return nil, op.Later(err)
		}
		if len(p.Key) == 0 {
			return h.ReadFile(ctx, at)
		}
		return slices.Concat(p.Certificate, p.Key), nil
	}
}

// Trust gives the load balancers the cluster's CA and the certificate that probe carries,
// and reloads them.
func Trust(c *manifest.Cluster, authority steps.Key[[]byte], probe steps.Key[Probe]) steps.Step {
	rs := []op.Resource{
		op.File{Path: caFile, Body: authorityText(authority)},
		op.File{Path: probeFile, Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: probeText(probeFile, probe)},
		op.Unit{Name: programOf(c).unit, Reload: true},
	}
	return op.Ensure("loadbalancer.trust", rs, func(m *steps.Meta) {
		m.Reads = []steps.AnyKey{authority, probe, Trusted}
	})
}

// Certificates are the files with certificates on load balancer hosts, and on workers with a load
// balancer.
func Certificates() []string { return []string{probeFile, path.Join(WorkerDir, probeName)} }

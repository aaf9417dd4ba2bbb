package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// authority carries the certificate of the cluster's CA to nodes that have none yet.
var authority = steps.NewKey[[]byte]("kubernetes.authority")

// ReadAuthority reads the certificate of the cluster's CA on the first master.
func ReadAuthority() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.read-authority", Always: true, LooksOnly: true, Timeout: time.Minute, Writes: []steps.AnyKey{authority}},
		Act: func(ctx context.Context, h *steps.Host) error {
			text, err := h.ReadFile(ctx, controlplane.AuthorityFile)
			if err != nil {
				return err
			}
			return authority.Put(h, text)
		},
	}
}

// WaitEndpoint waits until an API server of this cluster answers a node at the endpoint
// that the site has set up: a load balancer takes a moment until it counts a server in.
// The cluster's CA tells whether it is one. A node joins through the endpoint, and
// kubeadm itself would wait for minutes and say less.
func WaitEndpoint(c *manifest.Cluster) steps.Step {
	look := func(ctx context.Context, h *steps.Host) (string, error) { return askEndpoint(ctx, h, c) }
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.wait-endpoint", LooksOnly: true, Timeout: kubectl.Patience + time.Minute, Reads: []steps.AnyKey{authority}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			if _, err := authority.Get(h); err != nil {
				return false, nil // nobody has read it: a dry run
			}
			bad, err := look(ctx, h)
			return err == nil && bad == "", nil
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			return kubectl.Until(ctx, h, look, "have the load balancer, or the name, lead to the API servers of the masters, port "+strconv.Itoa(part.EndpointOf(c).Backend)+
				"; whoever tries on %s: openssl s_client -connect "+part.EndpointOf(c).At())
		},
	}
}

// askEndpoint tries once; bad is what may mend itself.
func askEndpoint(ctx context.Context, h *steps.Host, c *manifest.Cluster) (bad string, err error) {
	ca, err := authority.Get(h)
	if err != nil {
		return "", err
	}
	at := part.EndpointOf(c).At()
	err = controlplane.TryEndpoint(ctx, h, c, ca)
	var other *tls.CertificateVerificationError
	switch {
	case errors.Is(err, runner.ErrNoForward), errors.Is(err, runner.ErrNoTCP):
		h.Report(steps.Finding{Host: h.Name, Note: true, What: "not tested whether an API server answers at " + at + ": sshd forwards no connections",
			Advice: "allow it for a while (AllowTcpForwarding local in sshd_config), or test by hand"})
		return "", nil
	case errors.Is(err, controlplane.ErrNoAuthority):
		return "", steps.Lost(err)
	case errors.As(err, &other):
		return "", steps.Lost(steps.Advise(fmt.Errorf("who answers at %s is no API server of this cluster: %w", at, other.Err),
			"have the load balancer pass TCP on as it is, with no TLS of its own, and to the masters of this cluster alone"))
	case err != nil:
		return "no API server answers at " + at + ": " + err.Error(), nil
	}
	return "", nil
}

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

// Authority passes the certificate of the cluster's CA to nodes that have none yet.
var Authority = steps.NewKey[[]byte]("kubernetes.authority")

// ReadAuthority reads the certificate of the cluster's CA on the first healthy master,
// so that nodes can verify the API server before they join.
func ReadAuthority() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.read-authority", Always: true, ReadOnly: true, Timeout: time.Minute, Writes: []steps.AnyKey{Authority}},
		Act: func(ctx context.Context, h *steps.Host) error {
			text, err := h.ReadFile(ctx, controlplane.AuthorityFile)
			if err != nil {
				return err
			}
			return Authority.Put(h, text)
		},
	}
}

// WaitEndpoint waits until an API server of this cluster answers a node at the site's own
// endpoint: a load balancer needs a moment until it uses a new server. The server's
// certificate is verified with the cluster's CA. Nodes join through the endpoint, and
// kubeadm itself would wait for minutes with a less precise error.
func WaitEndpoint(c *manifest.Cluster) steps.Step {
	e := part.EndpointOf(c)
	test := "; to test it on %s: openssl s_client -connect " + e.At()
	if e.Front == part.KubeVIPFront {
		return waitAt(c, "kubernetes.wait-endpoint", e.At(), "choose an address that no other machine has as spec.controlPlaneEndpoint.address",
			"run crictl logs for the container kube-vip on the masters"+test)
	}
	return waitAt(c, "kubernetes.wait-endpoint", e.At(), "configure the load balancer to forward TCP without terminating TLS, and only to the masters of this cluster",
		"point the load balancer, or the name, at port "+strconv.Itoa(e.Backend)+" of the masters"+test)
}

// WaitWorkerBalancer waits until an API server of this cluster answers a worker through the
// load balancer on the worker itself.
func WaitWorkerBalancer(c *manifest.Cluster) steps.Step {
	at := part.EndpointOf(c).OnWorker()
	return waitAt(c, "kubernetes.wait-worker-balancer", at, "stop the program that listens at "+at,
		"see crictl ps -a --name balancer and crictl logs on the worker; to test it on %s: openssl s_client -connect "+at)
}

// waitAt waits until an API server answers at an address. other is the advice if another server
// answers, silent if none does, with the host's name for %s.
func waitAt(c *manifest.Cluster, name, at, other, silent string) steps.Step {
	check := func(ctx context.Context, h *steps.Host) (string, error) { return tryServer(ctx, h, c, at, other) }
	return &op.Do{
		M: steps.Meta{Name: name, ReadOnly: true, Timeout: kubectl.DefaultTimeout + time.Minute, Reads: []steps.AnyKey{Authority}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			if _, err := Authority.Get(h); err != nil {
				return false, nil // a dry run: no step has read the CA
			}
			bad, err := check(ctx, h)
			return err == nil && bad == "", nil
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			return kubectl.Until(ctx, h, check, silent)
		},
	}
}

// tryServer connects once. bad describes a failure that may pass; err is final.
func tryServer(ctx context.Context, h *steps.Host, c *manifest.Cluster, at, other string) (bad string, err error) {
	ca, err := Authority.Get(h)
	if err != nil {
		return "", err
	}
	err = controlplane.TryServer(ctx, h, c, ca, at)
	var stranger *tls.CertificateVerificationError
	switch {
	case errors.Is(err, runner.ErrNoForward), errors.Is(err, runner.ErrNoTCP):
		h.Report(steps.Finding{Host: h.Name, Note: true, What: "connection to the API server at " + at + " not tested: sshd forwards no connections",
			Advice: "set AllowTcpForwarding local in sshd_config during the run, or test the connection by hand"})
		return "", nil
	case errors.Is(err, controlplane.ErrNoAuthority):
		return "", steps.Permanent(err)
	case errors.As(err, &stranger):
		return "", steps.Permanent(steps.Advise(fmt.Errorf("the server at %s is not an API server of this cluster: %w", at, stranger.Err), "%s", other))
	case err != nil:
		return "no API server answers at " + at + ": " + err.Error(), nil
	}
	return "", nil
}

package sitetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// wire is the connection to a host: TCP connections to the registry's port reach the simulated
// registry.
type wire struct {
	*conntest.Sim
	site *Site
	host string
}

// Exec passes the command to the test's hooks, which may see it or answer instead of the host.
func (w *wire) Exec(ctx context.Context, c connector.Cmd) (connector.Result, error) {
	if w.site.OnCommand != nil {
		var stdin []byte
		if c.Stdin != nil {
			var err error
			if stdin, err = io.ReadAll(c.Stdin); err != nil {
				return connector.Result{}, fmt.Errorf("read the input: %w", err)
			}
			c.Stdin = bytes.NewReader(stdin)
		}
		w.site.OnCommand(w.host, steps.NodeOf(ctx), c, stdin)
	}
	if w.site.Answer != nil {
		if r := w.site.Answer(c); r != nil {
			return *r, nil
		}
	}
	return w.Sim.Exec(ctx, c)
}

func (w *wire) Dial(_ context.Context, _, address string) (net.Conn, error) {
	if e := part.EndpointOf(w.site.Cluster); e.Balanced() && (address == e.Name() || address == e.At()) {
		if !w.site.Kube.HoldsVIP() {
			return nil, &connector.DialError{Addr: address, Err: errors.New("no route to host")}
		}
		if w.site.Balancer != nil {
			return w.site.Balancer(w.host)
		}
		return w.site.Kube.Endpoint()
	}
	if e := part.EndpointOf(w.site.Cluster); e.OnNodes != "" && address == e.OnWorker() {
		return w.site.Kube.WorkerEndpoint(w.host)
	}
	if nfs := w.site.Cluster.Spec.Storage.NFS.Server; nfs != "" && address == net.JoinHostPort(nfs, "2049") {
		client, server := net.Pipe()
		return client, server.Close()
	}
	if w.site.ExternalRegistry != nil {
		return w.site.ExternalRegistry.dial(address)
	}
	if w.site.Registry == nil {
		return nil, &connector.DialError{Addr: address, Err: errors.New("connection refused")}
	}
	return w.site.Registry.Dial(w.Sim, address)
}

func (*wire) Listen(context.Context, string, string) (net.Listener, error) {
	return nil, errors.New("nobody listens here")
}

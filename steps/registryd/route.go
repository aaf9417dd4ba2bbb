package registryd

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
)

// directTimeout is the timeout of a connection attempt from the workdir host.
const directTimeout = 5 * time.Second

type dial func(ctx context.Context, network, address string) (net.Conn, error)

// route connects to an existing registry: directly from the workdir host, or else through
// the SSH connection of a host. It decides once for each address.
type route struct {
	direct, through dial
	names           map[string]string // addresses of names in the config
	turned          func(address string, why error)

	mu   sync.Mutex
	over map[string]bool // address → through the host
}

// routeFrom returns a route through h. It calls turned for each address that the workdir
// host does not reach.
func routeFrom(c *manifest.Cluster, h *steps.Host, turned func(address string, why error)) *route {
	w := &route{direct: h.Direct, names: namesOf(c), turned: turned, over: map[string]bool{}}
	if w.direct == nil {
		w.direct = (&net.Dialer{}).DialContext
	}
	if f, ok := h.Conn().(connector.Forwarder); ok {
		w.through = f.Dial
	}
	return w
}

// namesOf returns the names of spec.extra.hosts with their addresses. /etc/hosts has them on
// hosts only after the run has written it, and on the workdir host never.
func namesOf(c *manifest.Cluster) map[string]string {
	out := map[string]string{}
	for _, e := range c.Spec.Extra.Hosts {
		if out[e.Domain] == "" {
			out[e.Domain] = e.Address
		}
	}
	return out
}

// named returns an address with its name resolved by names.
func named(names map[string]string, address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && names[host] != "" {
		return net.JoinHostPort(names[host], port)
	}
	return address
}

// dial is the DialContext of an http.Transport.
func (w *route) dial(ctx context.Context, network, address string) (net.Conn, error) {
	at := named(w.names, address)
	w.mu.Lock()
	over := w.over[at]
	w.mu.Unlock()
	if over {
		return w.through(ctx, network, at)
	}
	short, cancel := context.WithTimeout(ctx, directTimeout)
	defer cancel()
	conn, err := w.direct(short, network, at)
	if err == nil || w.through == nil || ctx.Err() != nil {
		return conn, err
	}
	conn, second := w.through(ctx, network, at)
	if second != nil {
		return nil, fmt.Errorf("%w; and through the host: %w", err, second)
	}
	w.mu.Lock()
	first := !w.over[at]
	w.over[at] = true
	w.mu.Unlock()
	if first && w.turned != nil {
		w.turned(address, err)
	}
	return conn, nil
}

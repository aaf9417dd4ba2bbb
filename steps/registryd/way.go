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

// directly is how long a connection from this machine may take to come about.
const directly = 5 * time.Second

type dial func(ctx context.Context, network, address string) (net.Conn, error)

// way leads to a registry that stands already: from this machine where it reaches
// an address, else through the SSH connection of a host that does. Which of the two
// is found out once for each address.
type way struct {
	direct, through dial
	names           map[string]string // that the config gives an address
	turned          func(address string, why error)

	mu   sync.Mutex
	over map[string]bool // address → through the host
}

// wayFrom is the way with h to go through. turned hears of each address that this
// machine does not reach.
func wayFrom(c *manifest.Cluster, h *steps.Host, turned func(address string, why error)) *way {
	w := &way{direct: h.Direct, names: namesOf(c), turned: turned, over: map[string]bool{}}
	if w.direct == nil {
		w.direct = (&net.Dialer{}).DialContext
	}
	if f, ok := h.Conn().(connector.Forwarder); ok {
		w.through = f.Dial
	}
	return w
}

// namesOf are the names that /etc/hosts will have on the hosts: before a run has
// written them there, and on this machine, nobody else knows them.
func namesOf(c *manifest.Cluster) map[string]string {
	out := map[string]string{}
	for _, e := range c.Spec.Extra.Hosts {
		if out[e.Domain] == "" {
			out[e.Domain] = e.Address
		}
	}
	return out
}

// named gives an address with the name in it looked up.
func named(names map[string]string, address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && names[host] != "" {
		return net.JoinHostPort(names[host], port)
	}
	return address
}

// dial is for an http.Transport.
func (w *way) dial(ctx context.Context, network, address string) (net.Conn, error) {
	at := named(w.names, address)
	w.mu.Lock()
	over := w.over[at]
	w.mu.Unlock()
	if over {
		return w.through(ctx, network, at)
	}
	short, cancel := context.WithTimeout(ctx, directly)
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

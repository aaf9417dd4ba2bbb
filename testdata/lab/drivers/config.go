package drivers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"time"
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Config says which cluster is driven, and how it is reached.
type Config struct {
	Endpoint   string // URL of the API, behind whatever balances it
	ServerName string // that its certificate is verified for; "" is Endpoint's host
	// Addresses (host:port) are dialed in turn in place of Endpoint's host. They are for
	// a cluster without a balancer: any API server that accepts the connection will do.
	Addresses []string
	CA        []byte // PEM

	// The administrator's way in: a certificate with its key (PEM), or a token.
	Certificate, Key []byte
	Token            string

	Dial        Dial     // to Endpoint, Addresses and NodePorts; nil is net.Dialer's
	ServiceDial Dial     // to the Service's cluster IP: as from a host or pod of the cluster
	Nodes       []string // addresses whose NodePort is asked; none means every node's internal one
	Image       string   // with labtool; "" is the lab's
	Health      Health   // of HTTP/2 connections; the zero value is Stock
	StockWatch  bool     // a second watch, whose client has Stock; it is reported, and held to no limit

	Writes       int           // a second; 0 is 10
	Probes       int           // a second, half of them by each way; 0 is 50
	WriteTimeout time.Duration // 0 is five seconds
	ProbeTimeout time.Duration // 0 is one second
	Settle       time.Duration // patience with what has to come up, arrive or go away; 0 is two minutes
	Log          *slog.Logger
}

// Health says when a client drops an HTTP/2 connection that nothing comes from. They are
// client-go's HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS.
type Health struct {
	ReadIdle time.Duration // without a frame, until a ping is sent
	Ping     time.Duration // without its answer, until the connection is closed
}

// Stock is what client-go has where its environment sets nothing.
func Stock() Health { return Health{ReadIdle: 30 * time.Second, Ping: 15 * time.Second} }

// Limits of single requests.
const (
	askTimeout = time.Minute // of what is set up and read back
	tryTimeout = time.Second // of one of several addresses
)

func (c *Config) complete() error {
	switch {
	case c.Endpoint == "":
		return errors.New("no API endpoint is given")
	case c.ServiceDial == nil:
		return errors.New("no way is given to dial a cluster IP")
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Image = cmp.Or(c.Image, "lab.test/labtool:v1.0.0")
	c.Health = cmp.Or(c.Health, Stock())
	c.Writes = cmp.Or(c.Writes, 10)
	c.Probes = cmp.Or(c.Probes, 50)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 5*time.Second)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, time.Second)
	c.Settle = cmp.Or(c.Settle, 2*time.Minute)
	if c.Writes < 1 || c.Probes < 2 {
		return errors.New("at least one write and two probes a second are needed")
	}
	return nil
}

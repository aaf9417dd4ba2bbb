// Command standin is what runs in an image that stands in for another one: under
// every name and with whatever arguments the image's users call it, it stays up and
// answers probes, over HTTP and HTTPS alike. Its image says how:
//
//   - STAND_IN_LISTENS: ports, with spaces between them;
//   - STAND_IN_ENDS: anything, for an image whose containers do their work and end.
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	fmt.Println("this is no program but a stand-in for", strings.Join(os.Args, " "))
	if os.Getenv("STAND_IN_ENDS") != "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := certificate()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	for _, port := range strings.Fields(os.Getenv("STAND_IN_LISTENS")) {
		go serve(ctx, port, config)
	}
	<-ctx.Done()
}

// serve answers every request at a port. Another container of the pod may have the
// port already: it takes its turn when that one is gone.
func serve(ctx context.Context, port string, config *tls.Config) {
	var lc net.ListenConfig
	for ctx.Err() == nil {
		l, err := lc.Listen(ctx, "tcp", ":"+port)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })}
		if err := s.Serve(&either{Listener: l, config: config}); err != nil {
			fmt.Fprintf(os.Stderr, "port %s: %v\n", port, err)
		}
	}
}

// either accepts connections with TLS and without.
type either struct {
	net.Listener
	config *tls.Config
}

func (l *either) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, config: l.config}, nil
}

// conn looks at its first byte when it is read from, so that a peer that says
// nothing holds nobody up.
type conn struct {
	net.Conn
	config *tls.Config
	as     net.Conn // what the peer speaks; nil until it has spoken
}

// handshake is the first byte of one (RFC 8446, section 5.1).
const handshake = 22

func (c *conn) Read(b []byte) (int, error) {
	if c.as == nil {
		r := bufio.NewReader(c.Conn)
		first, err := r.Peek(1)
		if err != nil {
			return 0, err
		}
		c.as = &peeked{Conn: c.Conn, r: r}
		if first[0] == handshake {
			c.as = tls.Server(c.as, c.config)
		}
	}
	return c.as.Read(b)
}

func (c *conn) Write(b []byte) (int, error) {
	if c.as == nil {
		return 0, errors.New("nobody has asked yet")
	}
	return c.as.Write(b)
}

// peeked is a connection whose first bytes were looked at.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// certificate is one that nobody has reason to trust; probes do not ask.
func certificate() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, nil
}

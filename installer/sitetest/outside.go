package sitetest

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/registry/registrytest"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// ExternalRegistry is a registry that already exists: every host reaches it, and this machine
// only if Open is set.
type ExternalRegistry struct {
	*registrytest.Product
	Address string
	mapper  registry.Mapper
	conns   chan net.Conn
	closed  chan struct{}

	mu               sync.Mutex
	Open             bool
	LocalConnections int // connections from this machine

	calls sync.Mutex
	lines []net.Conn // the server's ends of connections
}

// newOutside starts the registry at the config's address, with a certificate of a CA that it
// adds to the config.
func newOutside(t TB, s *Site) *ExternalRegistry {
	t.Helper()
	o := &ExternalRegistry{Product: registrytest.NewProduct(), Address: "192.0.2.99:8443", mapper: registryd.MapperOf(s.Cluster), conns: make(chan net.Conn), closed: make(chan struct{})}
	at := s.Cluster.Spec.Registry.PrivateRegistry
	login := s.Cluster.Spec.Registry.Auths[at]
	o.User, o.Password = login.Username, "canary-of-the-registry"
	if login.PullUsername != "" {
		o.Readers = map[string]string{login.PullUsername: "canary-of-its-readers"}
	}
	store := pki.Store{Dir: t.TempDir()}
	ca, err := store.Authority("ca", "the site's CA", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(at, ":")
	leaf, err := store.Leaf("server", ca, pki.Request{CommonName: name, Names: []string{name}, Server: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := ca.Encode()
	if err != nil {
		t.Fatal(err)
	}
	login.CertsPath = filepath.Join(t.TempDir(), "certs")
	if err := os.MkdirAll(login.CertsPath, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(login.CertsPath, "ca.crt"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Cluster.Spec.Registry.Auths[at] = login
	cert, key, err := leaf.Encode()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: o, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), ReadHeaderTimeout: time.Minute}
	go func() { // ends with Close
		_ = srv.Serve(tls.NewListener(o, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}))
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		o.hangUp()
	})
	return o
}

// Accept implements net.Listener.
func (o *ExternalRegistry) Accept() (net.Conn, error) {
	select {
	case c := <-o.conns:
		return c, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (o *ExternalRegistry) Close() error {
	select {
	case <-o.closed:
	default:
		close(o.closed)
	}
	return nil
}

// Addr implements net.Listener.
func (*ExternalRegistry) Addr() net.Addr { return &net.TCPAddr{} }

// dial connects from a host.
func (o *ExternalRegistry) dial(address string) (net.Conn, error) {
	if address != o.Address {
		return nil, &connector.DialError{Addr: address, Err: errors.New("nobody is there: connection refused")}
	}
	here, there := net.Pipe()
	o.calls.Lock()
	o.lines = append(o.lines, there)
	o.calls.Unlock()
	select {
	case o.conns <- there:
		return here, nil
	case <-o.closed:
		return nil, net.ErrClosed
	}
}

// hangUp closes all connections, with pending reads and writes. In a synctest bubble whose
// test has ended no time passes, so that no write would time out.
func (o *ExternalRegistry) hangUp() {
	o.calls.Lock()
	defer o.calls.Unlock()
	for _, c := range o.lines {
		_ = c.Close()
	}
}

// direct connects from this machine.
func (o *ExternalRegistry) direct(_ context.Context, network, address string) (net.Conn, error) {
	o.mu.Lock()
	open := o.Open
	if open {
		o.LocalConnections++
	}
	o.mu.Unlock() // dial waits for the server
	if !open {
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.UnknownNetworkError("no route to " + address)}
	}
	return o.dial(address)
}

// holds reports whether an image was pushed to it.
func (o *ExternalRegistry) holds(ref string) bool {
	repository, tag, err := o.mapper.Repository(ref)
	if _, d, ok := strings.Cut(ref, "@"); ok {
		tag = d
	}
	return err == nil && o.Manifest(repository, tag) != ""
}

// AddSparseImage adds an image to the bundle whose index lists a platform that is missing, and
// makes the add-on refer to it by that index's digest.
func (s *Site) AddSparseImage() (published string) {
	s.T.Helper()
	const ref = "quay.example/site/tools:1.0"
	b := s.Bundle
	layer := b.put(s.T, v1.MediaTypeImageLayerGzip, []byte("layer of "+ref))
	config := b.put(s.T, v1.MediaTypeImageConfig, map[string]string{"os": "linux", "architecture": "amd64", "ref": ref})
	m := b.put(s.T, v1.MediaTypeImageManifest, v1.Manifest{MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{layer}})
	index := b.put(s.T, v1.MediaTypeImageIndex, v1.Index{MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{
		m, {MediaType: v1.MediaTypeImageManifest, Digest: digest.FromString("another platform"), Size: 5},
	}})
	b.trees[ref] = []v1.Descriptor{config, layer, m, index}
	b.pins = append(b.pins, manifest.ImagePin{Reference: ref, Names: []string{"site-tools/tools"}, MediaType: index.MediaType, Digest: index.Digest.String(), Size: index.Size})
	b.Text["site-tools"] = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: tools}, spec: {replicas: 2, template: {spec: {containers: [{name: tools, image: 'quay.example/site/tools@" +
		index.Digest.String() + "'}]}}}}\n"
	return index.Digest.String()
}

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// siteRegistry is the program that the registry's unit runs. What it holds is
// marked by a file in its data folder, and gone with that.
type siteRegistry struct {
	sim    *conntest.Sim
	mapper registry.Mapper
	marker string
	server *http.Server
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu     sync.Mutex
	inner  http.Handler
	stored map[string]bool // name:tag at the site
	open   map[net.Conn]bool
	puts   int         // uploads so far
	onPut  func(n int) // told of each before it is answered; may be nil
}

func newRegistry(c *manifest.Cluster, sim *conntest.Sim) *siteRegistry {
	r := &siteRegistry{
		sim: sim, mapper: registryd.MapperOf(c), marker: path.Join(c.Spec.Registry.RegistryDataDir, "docker", "registry"),
		conns: make(chan net.Conn), closed: make(chan struct{}), open: map[net.Conn]bool{},
	}
	r.server = &http.Server{Handler: r, ErrorLog: silent(), ReadHeaderTimeout: time.Minute}
	l := tls.NewListener(r, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair([]byte(sim.Read("/etc/kubexm/registry/tls.crt")), []byte(sim.Read("/etc/kubexm/registry/tls.key")))
		return &pair, err
	}})
	go func() { _ = r.server.Serve(l) }() // ends with stop
	return r
}

// Accept implements net.Listener.
func (r *siteRegistry) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (r *siteRegistry) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// Addr implements net.Listener.
func (*siteRegistry) Addr() net.Addr { return &net.TCPAddr{} }

func (r *siteRegistry) stop() { _ = r.server.Close() }

func (r *siteRegistry) runs() bool { return r.sim.Unit("kubexm-registry.service").Active }

// reach gives the way to the registry from a host: its own leads there.
func (r *siteRegistry) reach(own bool) func(string) (net.Conn, error) {
	return func(string) (net.Conn, error) {
		if !own || !r.runs() {
			return nil, errors.New("connection refused")
		}
		here, there := net.Pipe()
		select {
		case r.conns <- there:
		case <-r.closed:
			return nil, net.ErrClosed
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.open[there] = true
		return here, nil
	}
}

// restart ends all its connections and forgets uploads that are not done, as a
// registry does that systemd starts again.
func (r *siteRegistry) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		_ = c.Close()
		delete(r.open, c)
	}
}

// ServeHTTP implements http.Handler.
func (r *siteRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body) // what keeps the blobs lets nobody else in while it reads one
	if err != nil {
		return
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	r.mu.Lock()
	if r.sim.Read(r.marker) == "" {
		r.inner, r.stored = &shelf{
			inner: ggcr.New(ggcr.Logger(silent())), count: map[string]int{}, kept: map[string]document{}, fine: true,
		}, map[string]bool{}
		r.sim.AddFile(r.marker, "images", 0o600)
	}
	inner, strike := r.inner, r.onPut
	name, tag, manifest := strings.Cut(strings.TrimPrefix(q.URL.Path, "/v2/"), "/manifests/")
	n := 0
	if q.Method == http.MethodPut {
		r.puts++
		n = r.puts
	}
	r.mu.Unlock()
	if strike != nil && n > 0 {
		strike(n)
	}
	inner.ServeHTTP(w, q)
	if manifest && q.Method == http.MethodPut {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.stored[name+":"+tag] = true
	}
}

// uploads gives how many there were since the last strikeAt.
func (r *siteRegistry) uploads() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.puts
}

// strikeAt has f told of each upload, and counts them anew.
func (r *siteRegistry) strikeAt(f func(n int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.puts, r.onPut = 0, f
}

// holds tells whether the registry was given an image.
func (r *siteRegistry) holds(ref string) bool {
	repository, tag, err := r.mapper.Repository(ref)
	r.mu.Lock()
	defer r.mu.Unlock()
	return err == nil && r.runs() && r.stored[repository+":"+tag]
}

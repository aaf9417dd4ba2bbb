package registrydtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/registry"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/registryd"
)

// The registry's units on its host: one that nodes pull from, and one that accepts pushes.
const (
	Unit     = "kubexm-registry.service"
	PushUnit = "kubexm-registry-push.service"
)

// Registry answers while its units run: each of the two services on its own port, for the
// users in its own password file. The service for nodes is read-only. A marker file in the
// data folder represents the stored images: without it they are lost.
type Registry struct {
	Sim *conntest.Sim // the host it is on

	pullPort, pushPort string

	store  func() http.Handler
	mapper registry.Mapper
	marker string
	server *http.Server
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu     sync.Mutex
	inner  http.Handler
	stored map[string]bool // name:tag and name:digest in the site's registry
	open   map[net.Conn]bool
	puts   int         // uploads so far
	onPut  func(n int) // called before each upload is answered; may be nil
}

// Start runs the registry behind sim's units, until Stop. store creates the image storage
// each time the data folder is empty; nil stores images in memory.
func Start(c *manifest.Cluster, sim *conntest.Sim, store func() http.Handler) *Registry {
	silent := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	if store == nil {
		store = func() http.Handler { return ggcr.New(ggcr.Logger(silent)) }
	}
	r := &Registry{
		Sim: sim, store: store, mapper: registryd.MapperOf(c), marker: path.Join(c.Spec.Registry.RegistryDataDir, "docker", "registry"),
		conns: make(chan net.Conn), closed: make(chan struct{}), open: map[net.Conn]bool{},
		pushPort: strconv.Itoa(c.Spec.Registry.PushPort()),
	}
	_, r.pullPort = registryd.HostPort(c)
	r.server = &http.Server{Handler: r, ErrorLog: silent, ReadHeaderTimeout: time.Minute, ConnContext: func(ctx context.Context, c net.Conn) context.Context {
		if t, ok := c.(*tls.Conn); ok {
			if p, ok := t.NetConn().(*pushed); ok {
				return context.WithValue(ctx, pushed{}, p)
			}
		}
		return ctx
	}}
	l := tls.NewListener(r, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair([]byte(sim.Read("/etc/kubexm/registry/tls.crt")), []byte(sim.Read("/etc/kubexm/registry/tls.key")))
		return &pair, err
	}})
	go func() { _ = r.server.Serve(l) }() // ends with Stop
	return r
}

// Stop stops the registry and closes its connections, whatever state its units have: in a
// synctest bubble that has ended no time passes, and no write would time out. The connections
// are closed before the server is: it would first write the end of TLS to a client that may do
// the same at that moment, and hold a lock that another connection waits for.
func (r *Registry) Stop() {
	_ = r.Close()
	r.Restart()
	_ = r.server.Close()
}

// Accept implements net.Listener.
func (r *Registry) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (r *Registry) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// Addr implements net.Listener.
func (*Registry) Addr() net.Addr { return &net.TCPAddr{} }

func (r *Registry) runs(unit string) bool { return r.Sim.Unit(unit).Active }

// pushed is a connection to the service for pushes.
type pushed struct{ net.Conn }

// Dial connects to the service for nodes from any host, and to the service for pushes only
// from its own host's loopback address.
func (r *Registry) Dial(from *conntest.Sim, address string) (net.Conn, error) {
	host, port, _ := net.SplitHostPort(address)
	push := port == r.pushPort && host == "127.0.0.1" && from == r.Sim && r.runs(PushUnit)
	pull := port == r.pullPort && (host != "127.0.0.1" || from == r.Sim) && r.runs(Unit)
	if !push && !pull {
		return nil, &connector.DialError{Addr: address, Err: errors.New("connection refused")}
	}
	client, server := net.Pipe()
	if push {
		server = &pushed{server}
	}
	select {
	case r.conns <- server:
	case <-r.closed:
		return nil, net.ErrClosed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[server] = true
	return client, nil
}

// Restart closes all connections, like a registry that systemd restarts.
func (r *Registry) Restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		_ = c.Close()
		delete(r.open, c)
	}
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body) // the storage is locked while it reads a blob
	if err != nil {
		return
	}
	q.Body = io.NopCloser(bytes.NewReader(body))
	users, writes := "/etc/kubexm/registry/htpasswd", false
	if q.Context().Value(pushed{}) != nil {
		users, writes = "/etc/kubexm/registry/push.htpasswd", true
	}
	switch user, _, _ := q.BasicAuth(); {
	case user == "" || !strings.Contains("\n"+r.Sim.Read(users), "\n"+user+":"):
		w.Header().Set("WWW-Authenticate", `Basic realm="kubexm"`)
		http.Error(w, "authentication required", http.StatusUnauthorized)
		return
	case !writes && q.Method != http.MethodGet && q.Method != http.MethodHead:
		http.Error(w, "Method not allowed", http.StatusMethodNotAllowed)
		return
	}
	put := q.Method == http.MethodPut
	r.mu.Lock()
	if r.Sim.Read(r.marker) == "" {
		r.inner, r.stored = r.store(), map[string]bool{}
		r.Sim.AddFile(r.marker, "images", 0o600)
	}
	inner, strike := r.inner, r.onPut
	if put {
		r.puts++
	}
	n := r.puts
	r.mu.Unlock()
	if put && strike != nil {
		strike(n)
	}
	inner.ServeHTTP(w, q)
	if name, tag, ok := strings.Cut(strings.TrimPrefix(q.URL.Path, "/v2/"), "/manifests/"); ok && put {
		r.mu.Lock()
		defer r.mu.Unlock()
		sum := sha256.Sum256(body)
		r.stored[name+":"+tag], r.stored[name+":sha256:"+hex.EncodeToString(sum[:])] = true, true
	}
}

// Uploads returns the number of uploads since the last OnUpload.
func (r *Registry) Uploads() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.puts
}

// OnUpload calls f before each upload is answered, and resets the counter.
func (r *Registry) OnUpload(f func(n int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.puts, r.onPut = 0, f
}

// Holds reports whether the registry runs and has received an image, by its tag or its
// digest.
func (r *Registry) Holds(ref string) bool {
	repository, tag, err := r.mapper.Repository(ref)
	if _, digest, ok := strings.Cut(ref, "@"); ok {
		tag = digest
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return err == nil && r.runs(Unit) && r.stored[repository+":"+tag]
}

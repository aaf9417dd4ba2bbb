package main

import (
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mensylisir/kubexm/testdata/upstream"
)

// world answers under every host's own name, upstreams and mirrors alike, through a
// proxy on the loopback address: so kubexm asks what it would ask outside.
type world struct {
	server *upstream.Server

	mu    sync.Mutex
	hosts map[string]bool // that were asked
}

// startWorld makes the script's internet a world: it sets the proxy for all that
// follows, and writes world.yaml for --sources, which trusts the world's CA and
// replaces nothing.
func startWorld(ts *testscript.TestScript, _ bool, _ []string) {
	s := ts.Value(askedKey{}).(*asked)
	if s.server == nil {
		ts.Fatalf("world: after internet")
	}
	s.world = &world{server: s.server, hosts: map[string]bool{}}
	names := append(s.server.Hosts(), "index.docker.io", "m.daocloud.io", "files.m.daocloud.io", "mirrors.aliyun.com")
	config, ca, err := upstream.Certificate(names...)
	ts.Check(err)
	server := httptest.NewUnstartedServer(s.world)
	server.TLS, server.Config.ErrorLog = config, log.New(io.Discard, "", 0)
	server.StartTLS()
	ts.Defer(server.Close)
	proxy := httptest.NewServer(tunnel(server.Listener.Addr().String()))
	ts.Defer(proxy.Close)
	ts.Setenv("HTTPS_PROXY", proxy.URL)
	ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), ca, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("world.yaml"), []byte("apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Sources\nspec: {caFile: "+ts.MkAbs("ca.pem")+"}\n"), 0o600))
}

// tunnel is a proxy that leads every connection to one address.
func tunnel(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		out, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", to)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer out.Close()
		in, sent, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer in.Close()
		_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(out, sent); _ = out.Close() }() // sent has what came with the request
		_, _ = io.Copy(in, out)
	}
}

// ServeHTTP answers as the host that was asked. The two mirrors that have a host's
// name in the path have the layout of upstream.Server.
func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host := r.Host
	w.mu.Lock()
	w.hosts[host] = true
	w.mu.Unlock()
	r = r.Clone(r.Context())
	path := r.URL.Path
	switch {
	case host == "m.daocloud.io" || host == "files.m.daocloud.io" || path == "/v2/",
		strings.HasPrefix(path, "/release-assets.githubusercontent.com/"): // where the server redirects to
	case host == "mirrors.aliyun.com":
		path = "/download.docker.com" + strings.TrimPrefix(path, "/docker-ce")
	case strings.HasPrefix(path, "/v2/"):
		path = "/v2/" + strings.TrimPrefix(host, "index.") + strings.TrimPrefix(path, "/v2")
	default:
		path = "/" + host + path
	}
	r.URL.Path = path
	w.server.ServeHTTP(rw, r)
}

// reached holds the hosts that were asked since the last time to a list.
func reached(ts *testscript.TestScript, _ bool, want []string) {
	w := ts.Value(askedKey{}).(*asked).world
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(w.hosts)); !slices.Equal(got, want) {
		ts.Fatalf("asked %v, want %v", got, want)
	}
	clear(w.hosts)
}

// spoil changes a byte of everything below a path of the internet, and publishes
// another image under a reference; without a path it ends the former.
func spoil(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(askedKey{}).(*asked)
	s.server.Mend()
	for _, path := range args {
		if !strings.HasPrefix(path, "/") {
			known, err := s.server.Change(path, "other")
			ts.Check(err)
			if !known {
				ts.Fatalf("spoil: no image %s", path)
			}
			continue
		}
		s.server.Break(path, upstream.Fault{Spoil: true})
	}
}

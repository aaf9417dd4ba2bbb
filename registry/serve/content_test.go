package serve

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/registry/registrytest"
)

// The content of the tests' bundle: large is more than is held back.
var (
	large = []byte(strings.Repeat("0123456789abcdef", 40<<10)) // 640 KiB
	tool  = []byte(strings.Repeat("a program ", 60<<10))       // compressed in the archive
)

// world is a bundle with two registries that have one path in common, an index
// with a platform that is not there, a program and packages.
func world(t testing.TB) *registrytest.Content {
	t.Helper()
	w := registrytest.NewContent("")
	for _, add := range []struct {
		ref    string
		absent []string
	}{
		{"docker.io/library/busybox:1.36", []string{"s390x"}},
		{"docker.io/library/busybox:1.37", nil},
		{"registry.k8s.io/pause:3.10", []string{"arm64"}},
		{"quay.io/team/tool:v1", nil},
		{"ghcr.io/team/tool:v1", nil},
		{"localhost:5000/own/thing:2", nil},
	} {
		if _, err := w.Image(add.ref, []string{"amd64"}, add.absent, large); err != nil {
			t.Fatal(err)
		}
	}
	w.Binary("kubelet", "v1.32.2", tool)
	w.Debs(map[string]string{"Packages": "Package: socat\n", "Release": "Suite: x\n", "pool/socat_1.7_amd64.deb": "a package"})
	return w
}

func open(t *testing.T, w *registrytest.Content) *bundle.Bundle {
	t.Helper()
	path, err := w.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), path, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func handler(t *testing.T, b *bundle.Bundle, o Options) *Handler {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h, err := New(t.Context(), b, b.Lock, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// up serves the tests' bundle.
func up(t *testing.T, o Options) (*httptest.Server, *bundle.Bundle) {
	t.Helper()
	b := open(t, world(t))
	s := httptest.NewServer(handler(t, b, o))
	t.Cleanup(s.Close)
	return s, b
}

// get asks for a path as it is written, with headers in pairs.
func get(t *testing.T, s *httptest.Server, method, path string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Opaque: the client neither cleans nor escapes it.
	req.URL.Opaque = path
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

package serve

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle"
)

// answered asks without a connection.
func answered(t *testing.T, h http.Handler, path string, header ...string) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), w.Body.String()
}

func TestHostilePaths(t *testing.T) {
	s, _ := up(t, Options{})
	for _, path := range []string{
		"/v2/../", "/v2/../../etc/passwd", "/v2/%2e%2e/%2e%2e/etc/passwd", "/v2/library/../pause/manifests/3.10", "/v2/library/%2e%2e/pause/manifests/3.10",
		"/packages/debian-12/amd64/../../x", "/packages/debian-12/amd64/../amd64/Packages", "/packages/debian-12/amd64/%2e%2e/amd64/Packages",
		"/packages//debian-12/amd64/Packages", "/files/../packages/debian-12/amd64/Packages", "/files/.//kubelet/", "/files/..%2f..%2fetc/passwd",
		"/files/kubelet/v1.32.2/linux-amd64/kubelet/", "/files/kubelet%00/", "/files/kubelet\\..\\", "//v2/pause/manifests/3.10", "/v2//pause/manifests/3.10",
		"/v2/PAUSE/manifests/3.10", "/v2/pause/manifests/", "/v2/pause/manifests", "/v2/manifests/3.10", "/v2/pause/blobs/", "/v2/tags/list", "/v2/pause/manifests/3.10/x",
		"/v2/" + strings.Repeat("a", 300) + "/manifests/1", "/v2/" + strings.Repeat("a/", 20<<10) + "manifests/1", "/v2/pause/manifests/" + strings.Repeat("1", 40<<10),
		"/" + strings.Repeat("../", 10<<10), "/v2/pause/blobs/sha256:" + strings.Repeat("0", 64), "/v2/pause/blobs/sha512:" + strings.Repeat("0", 128),
	} {
		resp, body := get(t, s, http.MethodGet, path)
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusBadRequest || strings.Contains(body, "root:") {
			t.Errorf("%.80s: %d %.100s", path, resp.StatusCode, body)
		}
	}
	if resp, _ := get(t, s, http.MethodGet, "/v2/pause/manifests/3.10"); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
}

// A request's head is bounded; the process answers on.
func TestHugeHeader(t *testing.T) {
	b := open(t, world(t))
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = Run(t.Context(), l, handler(t, b, Options{}), slog.New(slog.DiscardHandler)) }()
	s := &httptest.Server{URL: "http://" + l.Addr().String()}
	if resp, _ := get(t, s, http.MethodGet, "/v2/"+strings.Repeat("a", 200<<10)); resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%d", resp.StatusCode)
	}
	if resp, _ := get(t, s, http.MethodGet, "/v2/"); resp.StatusCode != http.StatusOK {
		t.Errorf("afterwards: %d", resp.StatusCode)
	}
}

func TestRanges(t *testing.T) {
	s, _ := up(t, Options{})
	n := len(large)
	for name, c := range map[string]struct {
		header []string
		status int
		want   []byte
		says   string
	}{
		"from the start":     {[]string{"Range", "bytes=0-9"}, 206, large[:10], "bytes 0-9/655360"},
		"over a chunk's end": {[]string{"Range", "bytes=131000-262200"}, 206, large[131000:262201], "bytes 131000-262200/655360"},
		"one byte":           {[]string{"Range", "bytes=131072-131072"}, 206, large[131072:131073], "bytes 131072-131072/655360"},
		"the rest":           {[]string{"Range", "bytes=600000-"}, 206, large[600000:], "bytes 600000-655359/655360"},
		"the last":           {[]string{"Range", "bytes=-5"}, 206, large[n-5:], "bytes 655355-655359/655360"},
		"more than all":      {[]string{"Range", "bytes=-9999999"}, 206, large, "bytes 0-655359/655360"},
		"past the end":       {[]string{"Range", "bytes=655350-999999999"}, 206, large[655350:], "bytes 655350-655359/655360"},
		"beyond the end":     {[]string{"Range", "bytes=655360-"}, 416, nil, "bytes */655360"},
		"far beyond":         {[]string{"Range", "bytes=9223372036854775807-"}, 416, nil, "bytes */655360"},
		"to the last number": {[]string{"Range", "bytes=655359-9223372036854775807"}, 206, large[n-1:], "bytes 655359-655359/655360"},
		"none of it":         {[]string{"Range", "bytes=-0"}, 416, nil, "bytes */655360"},
		"too large a number": {[]string{"Range", "bytes=99999999999999999999-"}, 200, large, ""},
		"backwards":          {[]string{"Range", "bytes=9-5"}, 200, large, ""},
		"several":            {[]string{"Range", "bytes=0-1,4-5"}, 200, large, ""},
		"another unit":       {[]string{"Range", "items=0-1"}, 200, large, ""},
		"no numbers":         {[]string{"Range", "bytes=a-b"}, 200, large, ""},
		"a sign":             {[]string{"Range", "bytes=+1-2"}, 200, large, ""},
		"the same":           {[]string{"Range", "bytes=0-9", "If-Range", `"` + layer() + `"`}, 206, large[:10], "bytes 0-9/655360"},
		"another one":        {[]string{"Range", "bytes=0-9", "If-Range", `"x"`}, 200, large, ""},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := get(t, s, http.MethodGet, "/v2/pause/blobs/"+layer(), c.header...)
			if resp.StatusCode != c.status || !bytes.Equal([]byte(body), c.want) || resp.Header.Get("Content-Range") != c.says {
				t.Errorf("%d, %d bytes, %q; want %d, %d bytes, %q", resp.StatusCode, len(body), resp.Header.Get("Content-Range"), c.status, len(c.want), c.says)
			}
		})
	}
}

func FuzzRange(f *testing.F) {
	for _, text := range []string{"bytes=0-9", "bytes=-5", "bytes=5-", "bytes=9-5", "bytes=0-1,4-5", "bytes=--1", "bytes=9223372036854775807-9223372036854775807", "x"} {
		f.Add(text, int64(10))
	}
	f.Fuzz(func(t *testing.T, text string, size int64) {
		if size <= 0 {
			return
		}
		s, known, ok := parseRange(text, size)
		if known && ok && (s.from < 0 || s.from >= s.to || s.to > size) {
			t.Errorf("%q of %d: %+v", text, size, s)
		}
	})
}

// FuzzPath looks for a path that is answered with anything but a blob of the lock,
// a list or a refusal, or that ends the process.
func FuzzPath(f *testing.F) {
	for _, path := range []string{"/v2/", "/v2/pause/manifests/3.10", "/v2/_catalog?n=1&last=x", "/v2/a/tags/list", "/files/", "/packages/debian-12/amd64/../x", "/v2/%2e%2e/", "*"} {
		f.Add(path, "bytes=1-2")
	}
	w := world(f)
	path, err := w.Build(f.Context(), f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	b, err := bundle.Open(f.Context(), path, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		f.Fatal(err)
	}
	defer b.Close()
	h, err := New(f.Context(), b, b.Lock, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path, bytes string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://host"+path, nil)
		if err != nil || !strings.HasPrefix(r.URL.Path, "/") {
			return // net/http lets no other request through
		}
		r.Header.Set("Range", bytes)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		d := w.Header().Get("Docker-Content-Digest")
		if w.Code == http.StatusOK && d != "" && digest.FromBytes(w.Body.Bytes()).String() != d {
			t.Errorf("%q: %s has other content", path, d)
		}
		if w.Code >= 500 {
			t.Errorf("%q: %d", path, w.Code)
		}
	})
}

// damaged serves the tests' bundle with one byte changed in each place where text
// stands, at an offset from it.
func damaged(t *testing.T, text string, at int) (*httptest.Server, *bytes.Buffer) {
	t.Helper()
	path, err := world(t).Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(archive, []byte(text))
	if i < 0 {
		t.Fatalf("%q is not in the archive", text)
	}
	archive[i+at] ^= 1
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), path, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	log := &bytes.Buffer{}
	s := httptest.NewServer(handler(t, b, Options{Log: slog.New(slog.NewTextHandler(log, nil))}))
	t.Cleanup(s.Close)
	return s, log
}

// A blob that is not what its digest says never arrives completely, whichever part of
// it is wrong and whichever is asked for.
func TestDamage(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		at     int
		path   string
		header []string
		broken bool // the connection; else the answer is an error
	}{
		"at the start":        {string(large[:1000]), 0, "/v2/pause/blobs/" + layer(), nil, true},
		"at the end":          {string(large[:1000]), 600 << 10, "/v2/pause/blobs/" + layer(), nil, true},
		"before the range":    {string(large[:1000]), 10, "/v2/pause/blobs/" + layer(), []string{"Range", "bytes=200000-500000"}, true},
		"after the range":     {string(large[:1000]), 600 << 10, "/v2/pause/blobs/" + layer(), []string{"Range", "bytes=0-300000"}, true},
		"of a small range":    {string(large[:1000]), 600 << 10, "/v2/pause/blobs/" + layer(), []string{"Range", "bytes=0-10"}, false},
		"of a blob in memory": {"a package", 3, "/packages/debian-12/amd64/pool/socat_1.7_amd64.deb", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, log := damaged(t, c.text, c.at)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.header != nil {
				req.Header.Set(c.header[0], c.header[1])
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			switch {
			case c.broken && err == nil:
				t.Errorf("%d bytes came, announced were %d", len(body), resp.ContentLength)
			case !c.broken && (resp.StatusCode != http.StatusInternalServerError || resp.Header.Get("Docker-Content-Digest") != "" || !strings.Contains(string(body), "damaged")):
				t.Errorf("%d %v %.100s", resp.StatusCode, resp.Header, body)
			}
			s.Close()
			if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "sha256:") {
				t.Errorf("nothing is logged: %s", log)
			}
			if other, _ := get(t, httptest.NewServer(s.Config.Handler), http.MethodGet, "/v2/"); other.StatusCode != http.StatusOK {
				t.Errorf("afterwards: %d", other.StatusCode)
			}
		})
	}
}

// Whoever goes away in the middle leaves nothing behind that others wait for.
func TestClientsThatGo(t *testing.T) {
	b, content := big(t)
	layer, _ := bigLayer(t, b)
	h := handler(t, b, Options{})
	s := httptest.NewServer(h)
	defer s.Close()
	for range 2 * slots {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET "+layer+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if resp, body := get(t, s, http.MethodGet, layer); resp.StatusCode != http.StatusOK || len(body) != len(content) {
		t.Errorf("%d, %d bytes", resp.StatusCode, len(body))
	}
	for deadline := time.Now().Add(2 * time.Minute); len(h.limits.all) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d are still being read", len(h.limits.all))
		}
	}
}

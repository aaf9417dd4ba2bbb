package fetch

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

// secure is an upstream over https, with the file that holds its certificate.
func secure(t *testing.T, h http.HandlerFunc) (u *upstream, caFile string) {
	t.Helper()
	u = &upstream{}
	u.Server = httptest.NewUnstartedServer(u.counted(h))
	u.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	u.StartTLS()
	t.Cleanup(u.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	write(t, caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: u.Certificate().Raw}))
	return u, caFile
}

func TestCertificates(t *testing.T) {
	content := noise(1, 1000)
	u, ca := secure(t, served(content, ""))
	o := options(t, u)
	o.Sources.Replace[0].PlainHTTP = false
	err := client(t, o).FetchArtifact(t.Context(), plainFile(content))
	if err == nil || !strings.Contains(err.Error(), "set its CA in spec.sources.caFile") {
		t.Errorf("unknown authority: error %v", err)
	}
	o.Sources.CAFile = ca
	if err := client(t, o).FetchArtifact(t.Context(), plainFile(content)); err != nil {
		t.Fatal(err)
	}
	mustHold(t, o.Cache, content)
	for _, bad := range []string{filepath.Join(t.TempDir(), "none"), partFile(o.Cache, "none")} {
		write(t, partFile(o.Cache, "none"), []byte("no certificate"))
		o.Sources.CAFile = bad
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "read certificates") {
			t.Errorf("%s: error %v", bad, err)
		}
	}
}

func TestPlainHTTPNeedsPermission(t *testing.T) {
	content := noise(1, 1000)
	u := serve(t, served(content, ""))
	a := plainFile(content)
	a.Address = u.URL + "/thing"
	o := options(t, u)
	for _, f := range []func(c *Client) error{
		func(c *Client) error { return c.FetchArtifact(t.Context(), a) },
		func(c *Client) error { _, err := c.PinArtifact(t.Context(), a); return err },
	} {
		if err := f(client(t, o)); !is[*PlainHTTPError](err) {
			t.Errorf("error %v, want a PlainHTTPError", err)
		}
	}
	if n := u.asked(""); n != 0 {
		t.Errorf("%d requests were sent all the same", n)
	}
}

func TestRedirectDownToPlainHTTPIsRefused(t *testing.T) {
	content := noise(1, 1000)
	plain := serve(t, served(content, ""))
	u, ca := secure(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+"/thing?X-Signature=secret", http.StatusFound)
	})
	o := options(t, u)
	o.Sources = manifest.Sources{CAFile: ca, Replace: []manifest.Replacement{{From: "upstream.test", To: u.Listener.Addr().String()}}}
	err := client(t, o).FetchArtifact(t.Context(), plainFile(content))
	if !is[*PlainHTTPError](err) || !strings.Contains(err.Error(), "redirects to plain http") {
		t.Errorf("error %v, want a PlainHTTPError", err)
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("the error tells a secret: %v", err)
	}
	if n := plain.asked(""); n != 0 {
		t.Errorf("%d plain requests were sent all the same", n)
	}
}

// TestRedirectLoopIsReported: with its host, and without what is secret.
func TestRedirectLoopIsReported(t *testing.T) {
	circle := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		http.Redirect(w, r, "/around"+r.URL.Path+"?sig=secret", http.StatusFound)
	}
	u := serve(t, circle)
	c := client(t, options(t, u))
	_, index := c.index(t.Context(), "https://upstream.test/charts/index.yaml")
	_, image := c.PinImage(t.Context(), pin("upstream.test/app:v1"), []manifest.Platform{amd64})
	_, size := c.PinArtifact(t.Context(), plainFile(nil))
	for name, err := range map[string]error{"file": c.FetchArtifact(t.Context(), plainFile(noise(1, 10))), "index": index, "image": image, "size": size} {
		if err == nil || !is[*RedirectError](err) || strings.Contains(err.Error(), "secret") ||
			strings.Count(err.Error(), u.URL+"/") != 2 || !strings.Contains(err.Error(), "stopped after 10 redirects, the last one to "+u.URL+"/around") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestErrorsTellNoSecrets has a redirect to a signed address fail in each way.
func TestErrorsTellNoSecrets(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"refused": status(403),
		"cut":     func(w http.ResponseWriter, r *http.Request) { cut(w) },
		"busy":    status(503),
	} {
		u := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("sig") == "" {
				http.Redirect(w, r, "/signed?sig=secret", http.StatusFound)
				return
			}
			h(w, r)
		})
		o := options(t, u)
		o.Attempts = 1
		a := plainFile(noise(1, 10))
		err := client(t, o).FetchArtifact(t.Context(), a)
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "/signed") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestRefusedConnectionIsRetried(t *testing.T) {
	u := serve(t, status(200))
	u.Close()
	o := options(t, u)
	err := client(t, o).FetchArtifact(t.Context(), plainFile(nil))
	if err == nil || !strings.Contains(err.Error(), "gave up after 3 attempts") {
		t.Errorf("error %v", err)
	}
}

// TestStall runs on a clock of its own: a source is as slow as its reader says.
func TestStall(t *testing.T) {
	for _, test := range []struct {
		name  string
		bytes int           // each read brings
		pause time.Duration // before each read
		disk  time.Duration // after each read
		reads int           // that succeed, of 20
	}{
		{"fast enough", stallBytes, 900 * time.Millisecond, 0, 20},
		{"fast enough in two reads", stallBytes / 2, 450 * time.Millisecond, 0, 20},
		{"silent", stallBytes, 1100 * time.Millisecond, 0, 0},
		{"drips", 1, 400 * time.Millisecond, 0, 2},
		{"slow disk of ours", stallBytes, 100 * time.Millisecond, time.Hour, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				w := &watched{
					ctx: ctx, cancel: cancel, stall: time.Second, left: time.Second, address: "x", release: func() {},
					body: io.NopCloser(sleepy{ctx, test.pause, test.bytes}),
				}
				w.timer = time.AfterFunc(time.Hour, w.expire)
				w.timer.Stop()
				defer w.Close()
				buf := make([]byte, 2*stallBytes)
				for i := range 20 {
					_, err := w.Read(buf)
					if err != nil != (i >= test.reads) {
						t.Fatalf("read %d: error %v", i, err)
					}
					if err != nil {
						if !is[*StallError](err) {
							t.Errorf("error %v is no StallError", err)
						}
						return
					}
					time.Sleep(test.disk)
				}
			})
		})
	}
}

type sleepy struct {
	ctx   context.Context
	pause time.Duration
	bytes int
}

func (s sleepy) Read(p []byte) (int, error) {
	if err := sleep(s.ctx, s.pause); err != nil {
		return 0, errors.New("the request was cancelled")
	}
	return s.bytes, nil
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for s, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "-3": 0, "soon": 0,
		now.Add(7 * time.Second).Format(http.TimeFormat):  7 * time.Second,
		now.Add(-7 * time.Second).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(s, now); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
}

func TestPauseGrowsAndIsBounded(t *testing.T) {
	c := client(t, Options{Cache: &Cache{}, Backoff: 100 * time.Millisecond, MaxBackoff: time.Second})
	for failed, want := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 4: 800 * time.Millisecond, 5: time.Second, 99: time.Second} {
		for range 50 {
			d, ok := c.pause(failed, errShort)
			if !ok || d < want/2 || d >= want*3/2 {
				t.Fatalf("pause %d is %s, want about %s", failed, d, want)
			}
		}
	}
}

func TestContentRange(t *testing.T) {
	for _, test := range []struct {
		s                 string
		begin, end, total int64
		ok                bool
	}{
		{"bytes 0-0/1", 0, 0, 1, true}, {"bytes 5-9/10", 5, 9, 10, true}, {"bytes 5-9/*", 5, 9, -1, true},
		{"bytes 5-9/9", 0, 0, 0, false}, {"bytes 9-5/10", 0, 0, 0, false}, {"bytes */10", 0, 0, 0, false},
		{"5-9/10", 0, 0, 0, false}, {"bytes -1-9/10", 0, 0, 0, false}, {"", 0, 0, 0, false}, {"bytes 1-2", 0, 0, 0, false},
		{"bytes 0-99999999999999999999/10", 0, 0, 0, false},
	} {
		b, e, n, err := contentRange(test.s)
		if b != test.begin || e != test.end || n != test.total || (err == nil) != test.ok {
			t.Errorf("%q: %d %d %d %v", test.s, b, e, n, err)
		}
	}
}

func TestTemporary(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{&StatusError{Code: 503}, true}, {&StatusError{Code: 429}, true}, {&StatusError{Code: 408}, true},
		{&StatusError{Code: 404}, false}, {&StatusError{Code: 501}, false},
		{&StallError{}, true}, {errShort, true}, {&DigestError{}, false}, {&PlainHTTPError{}, false},
		{errors.New("anything else"), false},
	} {
		if got := temporary(test.err); got != test.want {
			t.Errorf("%v: %t, want %t", test.err, got, test.want)
		}
	}
}

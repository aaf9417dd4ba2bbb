package fetch

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestDownloadFaults has a server fail in one way each, and expects the file
// whole, or an error that says why; in the cache, and in a sink.
func TestDownloadFaults(t *testing.T) {
	t.Run("cache", func(t *testing.T) {
		downloadFaults(t, func(t *testing.T, c *Client, a manifest.Artifact) ([]byte, error) {
			t.Helper()
			if err := c.FetchArtifact(t.Context(), a); err != nil {
				return nil, err
			}
			return c.cache.read(a.SHA256, a.Size)
		})
	})
	t.Run("stream", func(t *testing.T) {
		downloadFaults(t, func(t *testing.T, c *Client, a manifest.Artifact) ([]byte, error) {
			t.Helper()
			to := newSink()
			err := c.StreamArtifact(a)(t.Context(), to)
			if all, lerr := c.cache.List(); lerr != nil || len(all) != 0 {
				t.Errorf("in the cache: %v, %v", all, lerr)
			}
			return to.b, err
		})
	})
}

func downloadFaults(t *testing.T, receive func(*testing.T, *Client, manifest.Artifact) ([]byte, error)) {
	t.Helper()
	content := noise(1, 300<<10)
	other := noise(2, 300<<10)
	whole := int64(len(content))
	tests := []struct {
		name    string
		handler http.HandlerFunc
		stall   time.Duration
		gets    int   // requests expected, 0 for any number
		sent    int64 // bytes expected to have been sent, 0 for any number
		err     string
	}{
		{name: "good", handler: served(content, `"a"`), gets: 1, sent: whole},
		{name: "cut, then continued", handler: inSequence(half(content, `"a"`), served(content, `"a"`)), gets: 2, sent: whole},
		{name: "cut, no ETag, digest decides", handler: inSequence(half(content, ""), served(content, "")), gets: 2, sent: whole},
		{name: "cut, then the whole for a range", gets: 3, handler: inSequence(half(content, `"a"`),
			func(w http.ResponseWriter, r *http.Request) { announce(w, content, `"a"`); _, _ = w.Write(content) },
			served(content, `"a"`))},
		{name: "cut, then 416", handler: inSequence(half(content, `"a"`), status(416), served(content, `"a"`)), gets: 3},
		{name: "cut, then another file by If-Range", handler: inSequence(half(other, `"old"`), served(content, `"new"`)), gets: 3},
		{name: "cut, then 206 of another ETag", gets: 3, handler: inSequence(half(other, `"old"`),
			func(w http.ResponseWriter, r *http.Request) { r.Header.Del("If-Range"); served(content, `"new"`)(w, r) },
			served(content, `"new"`))},
		{name: "cut, then 206 of other bytes unmarked", gets: 3, handler: inSequence(half(other, ""), served(content, ""))},
		{name: "206 from the wrong place", gets: 3, handler: inSequence(half(content, `"a"`),
			func(w http.ResponseWriter, r *http.Request) {
				r.Header.Set("Range", "bytes=5-")
				served(content, `"a"`)(w, r)
			},
			served(content, `"a"`))},
		{name: "206 with a total that lies", gets: 3, handler: inSequence(half(content, `"a"`),
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Range", "bytes 153600-307199/999999")
				w.WriteHeader(206)
			}, served(content, `"a"`))},
		{name: "stalls in the middle", stall: 500 * time.Millisecond, gets: 2, sent: whole, handler: inSequence(
			func(w http.ResponseWriter, r *http.Request) {
				announce(w, content, `"a"`)
				_, _ = w.Write(content[:100<<10])
				flush(w)
				<-r.Context().Done()
			}, served(content, `"a"`))},
		{name: "stalls before it answers", stall: 500 * time.Millisecond, gets: 2, sent: whole, handler: inSequence(
			func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, served(content, `"a"`))},
		{name: "stalls for ever", stall: 20 * time.Millisecond, gets: 3, err: "sent nothing for 20ms", handler: func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}},
		{name: "drips too slowly", stall: 50 * time.Millisecond, err: "sent nothing for 50ms", handler: func(w http.ResponseWriter, r *http.Request) {
			drip(content, 10*time.Millisecond, 1)(w, r)
		}},
		{name: "drips", stall: 10 * time.Second, gets: 1, sent: whole, handler: drip(content, time.Millisecond, 5000)},
		{name: "ends early without a length", gets: 2, sent: whole, handler: inSequence(
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"a"`)
				flush(w)
				_, _ = w.Write(content[:1000])
			}, served(content, `"a"`))},
		{name: "always ends early", gets: 3, err: "ended before the transfer was complete", handler: func(w http.ResponseWriter, r *http.Request) {
			flush(w)
		}},
		{name: "cut each time, and never continued", gets: 5, err: "gave up after 3 attempts", handler: func(w http.ResponseWriter, r *http.Request) {
			half(content, `"a"`)(w, r)
		}},
		{name: "announces too much", gets: 2, err: "has 307300 bytes, expected 307200", handler: served(append(noise(1, 300<<10), make([]byte, 100)...), "")},
		{name: "announces too little", gets: 2, err: "has 307100 bytes, expected 307200", handler: served(content[:len(content)-100], "")},
		{name: "sends too much without a length", gets: 2, err: "expected 307200", handler: func(w http.ResponseWriter, r *http.Request) {
			flush(w)
			_, _ = w.Write(append(noise(1, 300<<10), 1, 2, 3))
		}},
		{name: "another file", gets: 2, err: sum(other), handler: served(other, `"a"`)},
		{name: "another file, the expected digest", gets: 2, err: sum(content), handler: served(other, `"a"`)},
		{name: "broken once on the way", gets: 2, handler: inSequence(served(other, ""), served(content, ""))},
		{name: "redirected", gets: 3, handler: func(w http.ResponseWriter, r *http.Request) {
			if n, _ := strconv.Atoi(r.URL.Query().Get("n")); n < 2 {
				http.Redirect(w, r, "/elsewhere?n="+itoa(n+1), http.StatusFound)
				return
			}
			served(content, `"a"`)(w, r)
		}},
		{name: "redirected in a circle", gets: 10, err: "stopped after 10 redirects", handler: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}},
		{name: "busy, then fine", handler: inSequence(status(503), status(500), served(content, "")), gets: 3, sent: whole},
		{name: "busy for ever", handler: status(502), gets: 3, err: "gave up after 3 attempts: GET"},
		{name: "asks to wait too long", gets: 1, err: "429 Too Many Requests", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(429)
		}},
		{name: "not there", handler: status(404), gets: 1, err: "404 Not Found; check that this version exists"},
		{name: "forbidden", handler: status(403), gets: 1, err: "403 Forbidden"},
		{name: "not implemented", handler: status(501), gets: 1, err: "501 Not Implemented"},
		{name: "says why", gets: 1, err: "403 Forbidden: no [31m entry", handler: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(403)
			_, _ = w.Write([]byte("no \x1b[31m\nentry"))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, test.handler)
			o := options(t, u)
			if test.stall > 0 {
				o.Stall = test.stall
			}
			p := newProgress()
			o.Progress = p
			a := plainFile(content)
			got, err := receive(t, client(t, o), a)
			if test.err == "" {
				if err != nil || !bytes.Equal(got, content) {
					t.Fatalf("%d bytes, %v", len(got), err)
				}
				p.mustCount(t, a.ID, whole)
			} else {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("error %v, want one with %q", err, test.err)
				}
				if o.Cache.Has(a.SHA256, a.Size) {
					t.Error("the cache holds the file all the same")
				}
				p.mustEnd(t)
			}
			if got := u.asked(""); test.gets != 0 && got != test.gets {
				t.Errorf("%d requests, want %d", got, test.gets)
			}
			if got := u.bytesSent(); test.sent != 0 && got != test.sent {
				t.Errorf("%d bytes sent, want %d", got, test.sent)
			}
		})
	}
}

// drip sends n bytes of content at a time, with a pause between.
func drip(content []byte, pause time.Duration, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		announce(w, content, "")
		for i := 0; i < len(content); i += n {
			if _, err := w.Write(content[i:min(i+n, len(content))]); err != nil {
				return
			}
			flush(w)
			select {
			case <-time.After(pause):
			case <-r.Context().Done():
				return
			}
		}
	}
}

func TestRequestsOfAContinuedDownload(t *testing.T) {
	content := noise(1, 300<<10)
	u := serve(t, inSequence(half(content, `"tag"`), served(content, `"tag"`)))
	o := options(t, u)
	o.UserAgent = "kubexm/test"
	if err := client(t, o).FetchArtifact(t.Context(), plainFile(content)); err != nil {
		t.Fatal(err)
	}
	first, second := u.request(0).Header, u.request(1).Header
	if first.Get("Range") != "" || first.Get("If-Range") != "" {
		t.Errorf("first request has range headers: %v", first)
	}
	if second.Get("Range") != "bytes=153600-" || second.Get("If-Range") != `"tag"` {
		t.Errorf("second request has Range %q, If-Range %q", second.Get("Range"), second.Get("If-Range"))
	}
	for _, h := range []http.Header{first, second} {
		if h.Get("User-Agent") != "kubexm/test" || h.Get("Accept-Encoding") != "" {
			t.Errorf("headers %v", h)
		}
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	content := noise(1, 1000)
	u := serve(t, inSequence(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}, served(content, "")))
	began := time.Now()
	o := options(t, u)
	if err := client(t, o).FetchArtifact(t.Context(), plainFile(content)); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d < time.Second {
		t.Errorf("waited %s, asked for was 1s", d)
	}
	mustHold(t, o.Cache, content)
}

// TestManyCutsPass cuts every connection after a while: as long as each try
// brings something worth it, the number of tries is not limited.
func TestManyCutsPass(t *testing.T) {
	content := noise(1, 2<<20)
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		begin := 0
		if s, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
			begin, _ = strconv.Atoi(strings.TrimSuffix(s, "-"))
			w.Header().Set("Content-Range", "bytes "+itoa(begin)+"-"+itoa(len(content)-1)+"/"+itoa(len(content)))
		}
		w.Header().Set("Content-Length", itoa(len(content)-begin))
		if begin > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		end := min(begin+100<<10, len(content))
		_, _ = w.Write(content[begin:end])
		if end < len(content) {
			cut(w)
		}
	})
	o := options(t, u)
	if err := client(t, o).FetchArtifact(t.Context(), plainFile(content)); err != nil {
		t.Fatal(err)
	}
	mustHold(t, o.Cache, content)
	if got := u.bytesSent(); got != int64(len(content)) {
		t.Errorf("%d bytes sent, want %d", got, len(content))
	}
}

// TestCancelledAndContinued stops a download as a killed process does, then runs
// another client on the same cache.
func TestCancelledAndContinued(t *testing.T) {
	content := noise(1, 300<<10)
	reached := make(chan struct{})
	u := serve(t, inSequence(func(w http.ResponseWriter, r *http.Request) {
		announce(w, content, `"a"`)
		_, _ = w.Write(content[:200<<10])
		flush(w)
		close(reached)
		<-r.Context().Done()
	}, served(content, `"a"`)))
	o := options(t, u)
	ctx, cancel := context.WithCancel(t.Context())
	p := newProgress()
	p.seen = func(n int64) {
		if n >= 200<<10 {
			cancel()
		}
	}
	o.Progress = p
	if err := client(t, o).FetchArtifact(ctx, plainFile(content)); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want cancelled", err)
	}
	<-reached
	p = newProgress()
	o.Progress = p
	if err := client(t, o).FetchArtifact(t.Context(), plainFile(content)); err != nil {
		t.Fatal(err)
	}
	mustHold(t, o.Cache, content)
	p.mustCount(t, "file/thing/1", int64(len(content)))
	if got := u.bytesSent(); got != int64(len(content)) {
		t.Errorf("%d bytes sent, want %d", got, len(content))
	}
}

// TestPartialFileIsNotTrusted leaves the partial files that a crash, or a bad
// disk, may leave.
func TestPartialFileIsNotTrusted(t *testing.T) {
	content := noise(1, 300<<10)
	meta := `{"source":"` + hexOf("http://elsewhere/thing") + `","etag":"\"x\"","size":307200}`
	tests := []struct {
		name string
		part []byte
		meta string
		gets int
	}{
		{"other bytes", noise(9, 1000), meta, 2},
		{"other bytes, whole length", noise(9, 300<<10), meta, 1},
		{"all there", content, meta, 0},
		{"too long", append(noise(1, 300<<10), 1), meta, 1},
		{"empty", nil, meta, 1},
		{"no meta", content[:1000], "", 1},
		{"meta cut short", content[:1000], `{"source":`, 1},
		{"from another mirror", content[:1000], meta, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := serve(t, served(content, `"a"`))
			o := options(t, u)
			a := plainFile(content)
			write(t, partFile(o.Cache, a.SHA256), test.part)
			if test.meta != "" {
				write(t, o.Cache.partial(a.SHA256+metaSuffix), []byte(test.meta))
			}
			if err := client(t, o).FetchArtifact(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			mustHold(t, o.Cache, content)
			if got := u.asked(""); got != test.gets {
				t.Errorf("%d requests, want %d", got, test.gets)
			}
		})
	}
}

func TestCorruptBlobIsFetchedAgain(t *testing.T) {
	content := noise(1, 10<<10)
	u := serve(t, served(content, ""))
	o := options(t, u)
	c, a := client(t, o), plainFile(content)
	if err := c.FetchArtifact(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	bad := append([]byte{content[0] ^ 1}, content[1:]...)
	write(t, o.Cache.blob(a.SHA256), bad)
	// Nobody looked: the cache is asked for no more than name and size.
	if err := c.FetchArtifact(t.Context(), a); err != nil || u.asked("") != 1 {
		t.Fatalf("error %v after %d requests", err, u.asked(""))
	}
	if err := o.Cache.Discard(a.SHA256); err != nil {
		t.Fatal(err)
	}
	if err := c.FetchArtifact(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	mustHold(t, o.Cache, content)
}

// TestTwoClientsOneCache has clients of two caches on one directory, as two
// processes have, ask for the same at once.
func TestTwoClientsOneCache(t *testing.T) {
	content := noise(1, 300<<10)
	u := serve(t, drip(content, 5*time.Millisecond, 30<<10))
	o := options(t, u)
	var g sync.WaitGroup
	for range 2 {
		cache, err := OpenCache(o.Cache.Dir())
		if err != nil {
			t.Fatal(err)
		}
		own := o
		own.Cache = cache
		c := client(t, own)
		for range 3 {
			g.Go(func() {
				if err := c.FetchArtifact(t.Context(), plainFile(content)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	g.Wait()
	mustHold(t, o.Cache, content)
	if got := u.asked(""); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
}

func TestParallelBoundsAHost(t *testing.T) {
	var now, most atomic.Int32
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(5 * time.Millisecond)
		_, _ = w.Write([]byte(r.URL.Path))
	})
	o := options(t, u)
	o.Parallel = 2
	c := client(t, o)
	var g sync.WaitGroup
	for i := range 12 {
		g.Go(func() {
			path := "f" + itoa(i)
			a := plainFile([]byte("/" + path))
			a.Address = address(path)
			if err := c.FetchArtifact(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if got := most.Load(); got != 2 {
		t.Errorf("%d requests at once, want 2", got)
	}
}

func TestDigestErrorSaysBoth(t *testing.T) {
	content, other := noise(1, 1000), noise(2, 1000)
	u := serve(t, served(other, ""))
	err := client(t, options(t, u)).FetchArtifact(t.Context(), plainFile(content))
	e, ok := errors.AsType[*DigestError](err)
	if !ok {
		t.Fatalf("error %v is no DigestError", err)
	}
	want := DigestError{
		Name: "file/thing/1", Address: address("thing"), Target: u.URL + "/thing",
		Want: sum(content), Got: sum(other),
	}
	if *e != want {
		t.Errorf("got %+v, want %+v", *e, want)
	}
	if s := e.Error(); !strings.Contains(s, "mirror") || !strings.Contains(s, u.URL) {
		t.Errorf("error lacks advice or place: %s", s)
	}
}

func TestDiskErrorsAreNotRetried(t *testing.T) {
	u := serve(t, served(noise(1, 1000), ""))
	o := options(t, u)
	if err := os.RemoveAll(o.Cache.partial("")); err != nil {
		t.Fatal(err)
	}
	if err := client(t, o).FetchArtifact(t.Context(), plainFile(noise(1, 1000))); err == nil {
		t.Error("no error without a place to write")
	}
	if u.asked("") > 1 {
		t.Errorf("%d requests for a disk that fails", u.asked(""))
	}
}

func TestUnpinnedIsRefused(t *testing.T) {
	u := serve(t, served(nil, ""))
	c := client(t, options(t, u))
	plain, archive := plainFile(nil), plainFile(nil)
	plain.SHA256 = ""
	archive.Archive, archive.Members = "tar.gz", []manifest.Member{{Path: "a", Name: "a"}}
	for _, a := range []manifest.Artifact{plain, archive} {
		if err := c.FetchArtifact(t.Context(), a); err == nil || !strings.Contains(err.Error(), "not pinned") {
			t.Errorf("error %v, want not pinned", err)
		}
	}
}

// progress adds up what it is told.
type progress struct {
	mu    sync.Mutex
	count map[string]int64
	open  int
	seen  func(int64)
}

func newProgress() *progress { return &progress{count: map[string]int64{}, seen: func(int64) {}} }

func (p *progress) Start(name string, _ int64) Transfer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open++
	return &counting{p, name}
}

type counting struct {
	p    *progress
	name string
}

func (c *counting) Add(n int64) {
	c.p.mu.Lock()
	c.p.count[c.name] += n
	total := c.p.count[c.name]
	c.p.mu.Unlock()
	c.p.seen(total)
}

func (c *counting) Done(error) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.open--
}

func (p *progress) mustCount(t *testing.T, name string, want int64) {
	t.Helper()
	p.mustEnd(t)
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := p.count[name]; got != want {
		t.Errorf("progress of %s counts %d bytes, want %d", name, got, want)
	}
}

func (p *progress) mustEnd(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != 0 {
		t.Errorf("%d transfers never ended", p.open)
	}
}

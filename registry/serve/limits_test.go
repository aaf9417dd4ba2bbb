package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/registry/registrytest"
)

// big is more than the buffers of a connection hold.
func big(t *testing.T) (*bundle.Bundle, []byte) {
	t.Helper()
	w := registrytest.NewContent("")
	layer := make([]byte, 24<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(layer) // never fails
	if _, err := w.Image("registry.k8s.io/big:1", []string{"amd64"}, nil, layer); err != nil {
		t.Fatal(err)
	}
	return open(t, w), layer
}

// bigLayer is the path of the layer in a bundle of big's.
func bigLayer(t *testing.T, b *bundle.Bundle) (path, digest string) {
	t.Helper()
	tree, err := b.Tree(b.Lock.Images[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tree {
		if d.Size > 20<<20 {
			return "/v2/big/blobs/" + d.Digest.String(), d.Digest.String()
		}
	}
	t.Fatal("no layer")
	return "", ""
}

// from asks for a path from an address of this machine.
func from(t *testing.T, s *httptest.Server, address, path string) (*http.Response, []byte, error) {
	t.Helper()
	c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext,
	}}
	defer c.CloseIdleConnections()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(q)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

// TestIdleClientsHoldNobodyUp: clients of one address that ask for a layer and read
// nothing of it keep neither documents from anybody nor layers from other addresses.
func TestIdleClientsHoldNobodyUp(t *testing.T) {
	b, content := big(t)
	layer, _ := bigLayer(t, b)
	s := httptest.NewServer(handler(t, b, Options{}))
	defer s.CloseClientConnections()
	for range 40 {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", layer); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond) // they have what they may have; earlier would make the test easier, not harder
	for _, c := range []struct{ address, path string }{
		{"127.0.0.2", "/v2/big/manifests/1"}, {"127.0.0.3", "/v2/big/manifests/1"}, {"127.0.0.3", layer},
	} {
		resp, body, err := from(t, s, c.address, c.path)
		if err != nil || resp.StatusCode != http.StatusOK || c.path == layer && !bytes.Equal(body, content) {
			t.Errorf("%s from %s: %v", c.path, c.address, err)
		}
	}
}

// TestTooManyOfOneAddress: requests above the limit get status 429.
func TestTooManyOfOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimits()
		ctx, cancel := context.WithCancel(t.Context())
		var in, refused atomic.Int32
		for range perAddress + waitingPerAddress + 5 {
			go func() {
				leave, err := l.enter(ctx, "192.0.2.1")
				switch {
				case errors.Is(err, errBusy):
					refused.Add(1)
				case err == nil:
					in.Add(1)
					<-ctx.Done()
					leave()
				}
			}()
		}
		synctest.Wait()
		if in.Load() != perAddress || refused.Load() != 5 {
			t.Errorf("%d read, %d got status 429", in.Load(), refused.Load())
		}
		leave, err := l.enter(t.Context(), "192.0.2.2")
		if err != nil {
			t.Fatalf("another address: %v", err)
		}
		leave()
		cancel()
		synctest.Wait()
		if len(l.by) != 0 || len(l.all) != 0 {
			t.Errorf("%d addresses and %d reads are left", len(l.by), len(l.all))
		}
	})
}

func TestAddressesOfClients(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:4000": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[::ffff:192.0.2.1]:80": "192.0.2.1", "pipe": "pipe",
	} {
		if got := addressOf(remote); got != want {
			t.Errorf("%s: %s, want %s", remote, got, want)
		}
	}
}

// slow takes a while for each write, and keeps its deadlines.
type slow struct {
	httptest.ResponseRecorder
	each     time.Duration
	deadline time.Time
	wrote    int64
}

func (s *slow) SetWriteDeadline(t time.Time) error { s.deadline = t; return nil }
func (s *slow) Write(p []byte) (int, error) {
	if time.Now().Add(s.each).After(s.deadline) {
		time.Sleep(time.Until(s.deadline))
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(s.each)
	s.wrote += int64(len(p))
	return len(p), nil
}

// TestDeadlinesBySize: a client that reads nothing is disconnected within half a minute, and
// one that goes on slower than a slow line before it has everything.
func TestDeadlinesBySize(t *testing.T) {
	b, _ := big(t)
	layer, _ := bigLayer(t, b)
	for name, c := range map[string]struct {
		each time.Duration // for 128 KiB
		all  bool
		most time.Duration
	}{
		"a slow line":                 {3 * time.Second, true, 20 * time.Minute},
		"slower than that":            {20 * time.Second, false, 10 * time.Minute},
		"a client that reads nothing": {time.Hour, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := handler(t, b, Options{})
				w := &slow{each: c.each}
				began := time.Now()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, layer, nil))
				if all := w.wrote == 24<<20; all != c.all || time.Since(began) > c.most {
					t.Errorf("%d bytes in %s", w.wrote, time.Since(began))
				}
			})
		})
	}
}

// counting counts what is read of a bundle's blobs.
type counting struct {
	*bundle.Bundle
	read atomic.Int64
}

func (c *counting) Blob(d string) (io.ReadCloser, int64, error) {
	rc, n, err := c.Bundle.Blob(d)
	return &counted{rc, c}, n, err
}

func (c *counting) BlobAt(d string, off int64) (io.ReadCloser, int64, error) {
	rc, at, err := c.Bundle.BlobAt(d, off)
	return &counted{rc, c}, at, err
}

func (c *counting) Tree(im manifest.ImagePin) ([]v1.Descriptor, error) { return c.Bundle.Tree(im) }

type counted struct {
	io.ReadCloser
	by *counting
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.by.read.Add(int64(n))
	return n, err
}

// TestSmallRangesReadLittle: the first range of a layer reads all of it, since its
// digest says nothing of a part; those after it read no more than around them, and
// every byte is compared all the same.
func TestSmallRangesReadLittle(t *testing.T) {
	b, content := big(t)
	layer, _ := bigLayer(t, b)
	src := &counting{Bundle: b}
	h, err := New(t.Context(), src, b.Lock, Options{Log: handler(t, b, Options{}).log})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ from, to, most int64 }{
		{0, 0, 24 << 20}, {0, 0, 2 << 20}, {24<<20 - 1, 24<<20 - 1, 2 << 20}, {5 << 20, 7<<20 + 5, 5 << 20}, {1<<20 - 1, 1 << 20, 3 << 20},
	} {
		src.read.Store(0)
		resp, body := answered(t, h, layer, "Range", fmt.Sprintf("bytes=%d-%d", c.from, c.to))
		if resp.StatusCode != http.StatusPartialContent || body != string(content[c.from:c.to+1]) {
			t.Errorf("%d: %d, %d bytes", i, resp.StatusCode, len(body))
		}
		if n := src.read.Load(); n > c.most {
			t.Errorf("bytes %d to %d: %d bytes were read", c.from, c.to, n)
		}
	}
}

// TestDamageAfterARange: what was good when it was first read is compared again.
func TestDamageAfterARange(t *testing.T) {
	w := registrytest.NewContent("")
	content := bytes.Repeat([]byte("0123456789abcdef"), 256<<10)
	if _, err := w.Image("registry.k8s.io/big:1", []string{"amd64"}, nil, content); err != nil {
		t.Fatal(err)
	}
	path, err := w.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), path, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	tree, err := b.Tree(b.Lock.Images[0])
	if err != nil {
		t.Fatal(err)
	}
	layer := ""
	for _, d := range tree {
		if d.Size == int64(len(content)) {
			layer = "/v2/big/blobs/" + d.Digest.String()
		}
	}
	h := handler(t, b, Options{})
	if resp, _ := answered(t, h, layer, "Range", "bytes=0-0"); resp.StatusCode != http.StatusPartialContent {
		t.Fatal(resp.StatusCode)
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	archive[bytes.Index(archive, content[:1000])+10] ^= 1
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(archive); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if resp, body := answered(t, h, layer, "Range", "bytes=0-20"); resp.StatusCode != http.StatusInternalServerError || !strings.Contains(body, "damaged") {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
	if resp, _ := answered(t, h, layer, "Range", "bytes=2097152-2097160"); resp.StatusCode != http.StatusPartialContent {
		t.Errorf("another part: %d", resp.StatusCode)
	}
}

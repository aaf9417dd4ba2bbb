package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	orasremote "oras.land/oras-go/v2/registry/remote"

	"github.com/mensylisir/kubexm/testdata/upstream"
)

// Common clients pull every complete image.
func TestClientsPull(t *testing.T) {
	s, b := up(t, Options{})
	host := strings.TrimPrefix(s.URL, "http://")
	linux := ocispec.Platform{OS: "linux", Architecture: "amd64"}
	for _, im := range b.Lock.Images {
		at := host + "/" + strings.Replace(im.Reference, "localhost:5000", "localhost-5000", 1)
		t.Run("go-containerregistry "+im.Reference, func(t *testing.T) {
			ref, err := name.ParseReference(at, name.Insecure)
			if err != nil {
				t.Fatal(err)
			}
			img, err := remote.Image(ref, remote.WithContext(t.Context()), remote.WithPlatform(ggcr.Platform{OS: "linux", Architecture: "amd64"}))
			if err != nil {
				t.Fatal(err)
			}
			if d, err := img.Digest(); err != nil || d.String() != im.Platforms[0].Digest {
				t.Errorf("%s, %v; want %s", d, err, im.Platforms[0].Digest)
			}
			layers, err := img.Layers()
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range layers { // reading checks digest and size
				rc, err := l.Compressed()
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, rc); err != nil {
					t.Error(err)
				}
				rc.Close()
			}
			if err := validate.Image(img, validate.Fast); err != nil {
				t.Error(err)
			}
		})
		t.Run("oras "+im.Reference, func(t *testing.T) {
			repo, err := orasremote.NewRepository(at)
			if err != nil {
				t.Fatal(err)
			}
			repo.PlainHTTP = true
			_, tag, _ := strings.Cut(at[strings.LastIndex(at, "/"):], ":")
			o := oras.CopyOptions{}
			o.WithTargetPlatform(&linux)
			d, err := oras.Copy(t.Context(), repo, tag, memory.New(), "", o)
			if err != nil {
				t.Fatal(err)
			}
			if d.Digest.String() != im.Platforms[0].Digest {
				t.Errorf("%s, want %s", d.Digest, im.Platforms[0].Digest)
			}
		})
	}
}

// A missing platform is reported as missing.
func TestAbsentPlatformIsUnknown(t *testing.T) {
	s, _ := up(t, Options{})
	ref, err := name.ParseReference(strings.TrimPrefix(s.URL, "http://")+"/docker.io/library/busybox:1.36", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	_, err = remote.Image(ref, remote.WithContext(t.Context()), remote.WithPlatform(ggcr.Platform{OS: "linux", Architecture: "s390x"}))
	var said *transport.Error
	if !errors.As(err, &said) || said.StatusCode != http.StatusNotFound || said.Errors[0].Code != transport.ManifestUnknownErrorCode || !strings.Contains(err.Error(), "linux/s390x") {
		t.Errorf("%v", err)
	}
}

// Over TLS HTTP/1 alone is spoken, and an interrupt ends Run once answers that
// are under way are there.
func TestRunEndsInGoodOrder(t *testing.T) {
	config, ca, err := upstream.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, release := make(chan bool), make(chan bool)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		_, _ = io.WriteString(w, r.Proto)
	})
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, tls.NewListener(l, config), slow, slog.New(slog.DiscardHandler)) }()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	answer := make(chan string, 1)
	go func() {
		resp, err := client.Get("https://" + l.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-asked
	interrupt()
	time.Sleep(20 * time.Millisecond)
	select {
	case err := <-ended:
		t.Errorf("ended before its answer: %v", err)
	default:
	}
	close(release)
	if got := <-answer; got != "HTTP/1.1" {
		t.Errorf("the answer: %s", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", l.Addr().String()); err == nil {
		t.Error("it listens still")
	}
}

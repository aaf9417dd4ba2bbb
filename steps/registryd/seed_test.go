package registryd_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/registryd"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// wire is the connection to the registry's host: TCP through it arrives at the
// registry of the test.
type wire struct {
	*conntest.Sim
	to    string       // "" is nobody
	asked atomic.Value // the address that was asked for last
}

func (w *wire) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.asked.Store(address)
	if w.to == "" {
		return nil, &connector.DialError{Addr: address, Err: errors.New("connection refused")}
	}
	return (&net.Dialer{}).DialContext(ctx, network, w.to)
}

func (*wire) Listen(context.Context, string, string) (net.Listener, error) {
	return nil, errors.New("nobody listens here")
}

// imageBundle is a bundle of images.
type imageBundle struct {
	steptest.Artifacts
	blobs map[string][]byte
	trees map[string][]v1.Descriptor
	pins  []manifest.ImagePin
}

func (s *imageBundle) Images() []manifest.ImagePin { return s.pins }

func (s *imageBundle) Tree(im manifest.ImagePin) ([]v1.Descriptor, error) {
	return s.trees[im.Reference], nil
}

func (s *imageBundle) Blob(d string) (io.ReadCloser, int64, error) {
	b, ok := s.blobs[d]
	if !ok {
		return nil, 0, errors.New("no such blob")
	}
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
}

func (s *imageBundle) put(t *testing.T, mediaType string, v any) v1.Descriptor {
	t.Helper()
	b, ok := v.([]byte)
	if !ok {
		var err error
		if b, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(b), Size: int64(len(b))}
	s.blobs[d.Digest.String()] = b
	return d
}

func newImageBundle(t *testing.T, references ...string) *imageBundle {
	t.Helper()
	s := &imageBundle{blobs: map[string][]byte{}, trees: map[string][]v1.Descriptor{}}
	for _, ref := range references {
		layer := s.put(t, v1.MediaTypeImageLayerGzip, []byte("layer of "+ref))
		config := s.put(t, v1.MediaTypeImageConfig, map[string]string{"os": "linux", "architecture": "amd64", "ref": ref})
		m := s.put(t, v1.MediaTypeImageManifest, v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Config: config, Layers: []v1.Descriptor{layer}})
		s.trees[ref] = []v1.Descriptor{config, layer, m}
		s.pins = append(s.pins, manifest.ImagePin{Reference: ref, MediaType: m.MediaType, Digest: m.Digest.String(), Size: m.Size})
	}
	return s
}

// site is a registry behind the certificate and the users of registryd.Install.
func site(t *testing.T, s *conntest.Sim, user, password string) (address string, uploads *atomic.Int64) {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(s.Read("/etc/kubexm/registry/tls.crt")), []byte(s.Read("/etc/kubexm/registry/tls.key")))
	if err != nil {
		t.Fatal(err)
	}
	uploads = &atomic.Int64{}
	inner := ggcr.New(ggcr.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, p, _ := r.BasicAuth(); u != user || p != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="kubexm"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/uploads/") {
			uploads.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String(), uploads
}

func TestSeedPushesThroughSSH(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c, Workdir: t.TempDir(), Artifacts: newImageBundle(t, "registry.k8s.io/pause:3.10", "docker.io/library/nginx:1.29")}
	w := &wire{Sim: kase.Sim(t)}
	install := registryd.Install(c)
	if err := install.Run(t.Context(), kase.NewHost(t, w.Sim, install)); err != nil {
		t.Fatal(err)
	}
	step := registryd.Seed(c, nil)
	h := kase.NewHost(t, w.Sim, step)
	h.Runner = runner.New(w, runner.Options{})
	look := func(want steps.Verdict) {
		t.Helper()
		if v, err := step.Precheck(t.Context(), h); err != nil || v != want {
			t.Fatalf("verdict %v, %v", v, err)
		}
	}
	look(steps.Todo) // it does not listen yet
	if err := step.Run(t.Context(), h); err == nil || !strings.Contains(strings.Join(steps.Advice(err), " "), "journalctl -u kubexm-registry-push.service") {
		t.Errorf("nobody listens: %v, %q", err, steps.Advice(err))
	}

	password, err := registryd.AccessOf(h).Password(registryd.PushUser)
	if err != nil {
		t.Fatal(err)
	}
	address, uploads := site(t, w.Sim, registryd.PushUser, password)
	w.to = address
	look(steps.Todo)
	if err := step.Run(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	look(steps.Done)
	if got := w.asked.Load(); got != "127.0.0.1:5001" {
		t.Errorf("asked for %v: pushes are taken on the host itself", got)
	}
	sent := uploads.Load()
	if sent != 4 {
		t.Errorf("%d blobs were sent", sent)
	}
	if err := step.Run(t.Context(), h); err != nil || uploads.Load() != sent {
		t.Errorf("a second run sent %d more: %v", uploads.Load()-sent, err)
	}
}

func TestSeedTrustsNoOtherCertificate(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small)
	kase := steptest.Case{Cluster: c, Workdir: t.TempDir(), Artifacts: newImageBundle(t, "registry.k8s.io/pause:3.10")}
	stranger := steptest.Case{Cluster: c, Workdir: t.TempDir()}
	w := &wire{Sim: kase.Sim(t)}
	install := registryd.Install(c)
	if err := install.Run(t.Context(), stranger.NewHost(t, w.Sim, install)); err != nil {
		t.Fatal(err)
	}
	step := registryd.Seed(c, nil)
	h := kase.NewHost(t, w.Sim, step)
	h.Runner = runner.New(w, runner.Options{})
	password, err := registryd.AccessOf(h).Password(registryd.PushUser)
	if err != nil {
		t.Fatal(err)
	}
	w.to, _ = site(t, w.Sim, registryd.PushUser, password)
	if err := step.Run(t.Context(), h); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a registry with another CA's certificate: %v", err)
	}
}

func TestSeedNeedsTCPForwarding(t *testing.T) {
	kase := steptest.Case{}
	step := registryd.Seed(steptest.Cluster(t, steptest.Small), nil)
	h := kase.NewHost(t, kase.Sim(t), step)
	h.Runner = runner.New(struct{ connector.Conn }{h.Conn()}, runner.Options{})
	if _, err := step.Precheck(t.Context(), h); err == nil {
		t.Error("a wire without TCP was taken")
	}
}

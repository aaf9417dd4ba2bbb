package upstream

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/mensylisir/kubexm/manifest"
)

// serve starts a server for the sample with small content.
func serve(t *testing.T, o Options) (*Server, string) {
	t.Helper()
	if o.Scale == 0 {
		o.Scale = 0.02
	}
	s, err := New(t.Context(), Sample(), o)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, h.URL
}

// get asks for url and gives the answer with its body read.
func get(t *testing.T, url string, header ...string) (*http.Response, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, b, err
}

func hexOf(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

func TestFilesAreWhatTheLockSays(t *testing.T) {
	s, url := serve(t, Options{})
	for _, a := range s.Lock().Artifacts {
		t.Run(a.ID, func(t *testing.T) {
			_, b, err := get(t, url+"/"+strings.TrimPrefix(a.Address, "https://"))
			if err != nil || hexOf(b) != a.SHA256 || int64(len(b)) != a.Size {
				t.Fatalf("%d bytes with sha256 %s, %v; the lock says %d, %s", len(b), hexOf(b), err, a.Size, a.SHA256)
			}
			if a.DigestAddress != "" {
				_, sums, err := get(t, url+"/"+strings.TrimPrefix(a.DigestAddress, "https://"))
				if err != nil || !strings.Contains(string(sums), a.SHA256) {
					t.Errorf("the digest file says\n%s, %v", sums, err)
				}
			}
			checkMembers(t, a, b)
		})
	}
}

// checkMembers looks for every member in the archive b.
func checkMembers(t *testing.T, a manifest.Artifact, b []byte) {
	t.Helper()
	if a.Archive == "" {
		return
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	found, others := map[string]string{}, 0
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(h.Name, "./")
		if slices.ContainsFunc(a.Members, func(m manifest.Member) bool { return m.Path == name && m.Size == int64(len(body)) }) {
			found[name] = hexOf(body)
		} else if h.Typeflag == tar.TypeReg {
			others++
		}
	}
	for _, m := range a.Members {
		if found[m.Path] != m.SHA256 {
			t.Errorf("%s has %s, the lock says %s", m.Path, found[m.Path], m.SHA256)
		}
	}
	if others != 2 {
		t.Errorf("%d files that nobody asked for, want 2", others)
	}
}

func TestDigestFilesLookAsUpstreamWritesThem(t *testing.T) {
	s, url := serve(t, Options{})
	sha := map[string]string{}
	for _, a := range s.Lock().Artifacts {
		sha[a.ID] = a.SHA256
	}
	for at, want := range map[string]string{
		"/dl.k8s.io/release/v1.32.2/bin/linux/arm64/kubelet.sha256": sha["binary/kubelet/v1.32.2/linux/arm64"],
		"/github.com/etcd-io/etcd/releases/download/v3.5.16/SHA256SUMS": sha["binary/etcd/3.5.16/linux/amd64"] + "  etcd-v3.5.16-linux-amd64.tar.gz\n" +
			sha["binary/etcd/3.5.16/linux/arm64"] + "  etcd-v3.5.16-linux-arm64.tar.gz\n",
		"/github.com/containernetworking/plugins/releases/download/v1.6.2/cni-plugins-linux-amd64-v1.6.2.tgz.sha256": sha["binary/cni-plugins/1.6.2/linux/amd64"] + "  cni-plugins-linux-amd64-v1.6.2.tgz\n",
	} {
		if _, b, err := get(t, url+at); err != nil || string(b) != want {
			t.Errorf("%s: %v, differs (-want +got):\n%s", at, err, cmp.Diff(want, string(b)))
		}
	}
}

func TestRangesAndConditions(t *testing.T) {
	_, url := serve(t, Options{})
	at := url + "/dl.k8s.io/release/v1.32.2/bin/linux/amd64/kubelet"
	res, all, err := get(t, at)
	if err != nil {
		t.Fatal(err)
	}
	tag := res.Header.Get("ETag")
	if tag == "" || res.Header.Get("Last-Modified") == "" || res.ContentLength != int64(len(all)) {
		t.Errorf("headers %v", res.Header)
	}
	for _, c := range []struct {
		name   string
		header []string
		status int
		want   []byte
	}{
		{"from the middle", []string{"Range", "bytes=1000-"}, http.StatusPartialContent, all[1000:]},
		{"same content", []string{"Range", "bytes=1000-", "If-Range", tag}, http.StatusPartialContent, all[1000:]},
		{"other content", []string{"Range", "bytes=1000-", "If-Range", `"other"`}, http.StatusOK, all},
		{"known", []string{"If-None-Match", tag}, http.StatusNotModified, nil},
		{"past the end", []string{"Range", fmt.Sprintf("bytes=%d-", len(all))}, http.StatusRequestedRangeNotSatisfiable, nil},
	} {
		res, b, err := get(t, at, c.header...)
		if err != nil || res.StatusCode != c.status || c.want != nil && !bytes.Equal(b, c.want) {
			t.Errorf("%s: %v, status %d with %d bytes; want %d with %d", c.name, err, res.StatusCode, len(b), c.status, len(c.want))
		}
	}
}

func TestImagesAreWhatTheLockSays(t *testing.T) {
	const single = "registry.k8s.io/pause:3.10"
	s, url := serve(t, Options{Single: []string{single}})
	forms := map[string]int{}
	layers := map[string]int{}
	for _, p := range s.Lock().Images {
		t.Run(p.Reference, func(t *testing.T) {
			ref, err := name.ParseReference(strings.TrimPrefix(url, "http://")+"/"+p.Reference, name.Insecure)
			if err != nil {
				t.Fatal(err)
			}
			d, err := remote.Get(ref, remote.WithContext(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			if d.Digest.String() != p.Digest || d.Size != p.Size || string(d.MediaType) != p.MediaType {
				t.Errorf("is %s, %d bytes, %s; the lock says %s, %d, %s", d.Digest, d.Size, d.MediaType, p.Digest, p.Size, p.MediaType)
			}
			forms[p.MediaType]++
			if p.Reference == single {
				img, err := d.Image()
				if err != nil {
					t.Fatal(err)
				}
				checkImage(t, img, p.Platforms[0], layers)
				return
			}
			idx, err := d.ImageIndex()
			if err != nil {
				t.Fatal(err)
			}
			m, err := idx.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Manifests) < 3 || len(p.Platforms) != 2 {
				t.Errorf("%d manifests, %d platforms in the lock; want further ones and 2", len(m.Manifests), len(p.Platforms))
			}
			for _, q := range p.Platforms {
				h, err := v1.NewHash(q.Digest)
				if err != nil {
					t.Fatal(err)
				}
				img, err := idx.Image(h)
				if err != nil {
					t.Fatal(err)
				}
				checkImage(t, img, q, layers)
			}
		})
	}
	if len(forms) != 3 {
		t.Errorf("the sample has the forms %v, want an OCI index, a Docker list and a single manifest", forms)
	}
	if !slices.ContainsFunc(slices.Collect(mapValues(layers)), func(n int) bool { return n > 1 }) {
		t.Error("no layer is shared")
	}
}

func mapValues(m map[string]int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func checkImage(t *testing.T, img v1.Image, q manifest.PlatformImage, layers map[string]int) {
	t.Helper()
	if err := validate.Image(img); err != nil {
		t.Errorf("%s: %v", q.Platform, err)
	}
	m, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	content := m.Config.Size
	for _, l := range m.Layers {
		content += l.Size
		layers[l.Digest.String()]++
	}
	if content != q.Content {
		t.Errorf("%s: config and layers have %d bytes, the lock says %d", q.Platform, content, q.Content)
	}
}

func TestWhatIsNotServed(t *testing.T) {
	_, url := serve(t, Options{})
	for at, code := range map[string]string{
		"/dl.k8s.io/release/v9/kubelet":                    "",
		"/v2/registry.k8s.io/pause/manifests/9":            "MANIFEST_UNKNOWN",
		"/v2/registry.k8s.io/other/manifests/3.10":         "NAME_UNKNOWN",
		"/v2/registry.k8s.io/pause/blobs/sha256:00":        "BLOB_UNKNOWN",
		"/v2/registry.k8s.io/pause/uploads/x":              "UNSUPPORTED",
		"/v2/x":                                            "NAME_UNKNOWN",
		"/etc/passwd":                                      "",
		"/v2/registry.k8s.io/pause/manifests/../../../etc": "",
	} {
		res, b, err := get(t, url+at)
		if err != nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d, %v", at, res.StatusCode, err)
			continue
		}
		var answer struct{ Errors []struct{ Code string } }
		if code != "" && (json.Unmarshal(b, &answer) != nil || len(answer.Errors) != 1 || answer.Errors[0].Code != code) {
			t.Errorf("%s: %s, want code %s", at, b, code)
		}
	}
	res, err := http.Post(url+"/v2/registry.k8s.io/pause/blobs/uploads/", "", nil)
	if err != nil || res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("an upload: %v, %v", res, err)
	}
	res.Body.Close()
}

func TestTheSameLockGivesTheSameBytes(t *testing.T) {
	a, _ := serve(t, Options{})
	b, _ := serve(t, Options{})
	if d := cmp.Diff(a.Lock(), b.Lock()); d != "" {
		t.Error(d)
	}
	c, err := New(t.Context(), a.Lock(), Options{Scale: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a.Lock(), c.Lock()); d != "" {
		t.Error("from its own lock it makes something else:\n" + d)
	}
}

func TestChangePublishesSomethingElse(t *testing.T) {
	s, url := serve(t, Options{})
	before := s.Lock()
	for _, address := range []string{before.Artifacts[0].Address, before.Images[0].Reference} {
		if known, err := s.Change(address, "later"); !known || err != nil {
			t.Fatalf("%s: %v, %v", address, known, err)
		}
	}
	if known, _ := s.Change("https://example.com/x", "later"); known {
		t.Error("an address that nobody serves was changed")
	}
	after := s.Lock()
	if after.Artifacts[0].SHA256 == before.Artifacts[0].SHA256 || after.Images[0].Digest == before.Images[0].Digest {
		t.Error("the lock did not change")
	}
	_, b, err := get(t, url+"/"+strings.TrimPrefix(before.Artifacts[0].Address, "https://"))
	if err != nil || hexOf(b) != after.Artifacts[0].SHA256 {
		t.Errorf("serves %s, %v; the lock says %s", hexOf(b), err, after.Artifacts[0].SHA256)
	}
	if a, b := after.Artifacts[0], before.Artifacts[0]; a.Archive == "" && a.Size != b.Size {
		t.Errorf("the file has %d bytes, before it had %d", a.Size, b.Size)
	}
	repo, tag, _ := strings.Cut(before.Images[0].Reference, ":")
	for what, want := range map[string]string{tag: after.Images[0].Digest, before.Images[0].Digest: before.Images[0].Digest} {
		res, b, err := get(t, url+"/v2/"+repo+"/manifests/"+what)
		if err != nil || "sha256:"+hexOf(b) != want || res.Header.Get("Docker-Content-Digest") != want {
			t.Errorf("%s gives %s, %v; want %s", what, hexOf(b), err, want)
		}
	}
	for _, address := range []string{before.Artifacts[0].Address, before.Images[0].Reference} {
		if _, err := s.Change(address, ""); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(before, s.Lock()); d != "" {
		t.Errorf("without a salt it is not the first content again:\n%s", d)
	}
}

func TestLogin(t *testing.T) {
	_, url := serve(t, Options{Login: &Login{User: "me", Password: "secret"}})
	host := strings.TrimPrefix(url, "http://")
	ref, err := name.ParseReference(host+"/registry.k8s.io/pause:3.10", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	good := remote.WithAuth(&authn.Basic{Username: "me", Password: "secret"})
	if _, err := remote.Get(ref, good, remote.WithContext(t.Context())); err != nil {
		t.Errorf("with the password: %v", err)
	}
	for name, auth := range map[string]authn.Authenticator{
		"nobody": authn.Anonymous, "wrong": &authn.Basic{Username: "me", Password: "x"},
	} {
		if _, err := remote.Get(ref, remote.WithAuth(auth), remote.WithContext(t.Context())); err == nil {
			t.Errorf("%s was let in", name)
		}
	}
	if res, _, err := get(t, url+"/dl.k8s.io/release/v1.32.2/bin/linux/amd64/kubelet"); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("a file asks for a login: %v", err)
	}
}

func TestFaults(t *testing.T) {
	s, url := serve(t, Options{})
	const path = "/dl.k8s.io/release/v1.32.2/bin/linux/amd64/kubelet"
	_, all, err := get(t, url+path)
	if err != nil {
		t.Fatal(err)
	}
	fresh := func(f Fault) { s.Mend(); s.Forget(); s.Break("/dl.k8s.io/", f) }

	fresh(Fault{Times: 2, Status: http.StatusTooManyRequests, RetryAfter: "1"})
	for i, want := range []int{429, 429, 200, 200} {
		res, _, err := get(t, url+path)
		if err != nil || res.StatusCode != want || (want == 429) != (res.Header.Get("Retry-After") == "1") {
			t.Errorf("request %d: status %d, %v; want %d", i, res.StatusCode, err, want)
		}
	}
	if c := s.Counts()[path]; c.Requests != 4 || c.Bytes < 2*int64(len(all)) {
		t.Errorf("counted %+v", c)
	}

	fresh(Fault{Times: 1, CutAfter: 5000})
	if _, b, err := get(t, url+path); err == nil || !bytes.Equal(b, all[:5000]) {
		t.Errorf("cut after 5000 bytes: %d came, error %v", len(b), err)
	}
	if c := s.Counts()[path]; c != (Count{Requests: 1, Bytes: 5000, Size: int64(len(all))}) {
		t.Errorf("counted %+v", c)
	}
	fresh(Fault{Times: 1, CutAfter: -1})
	// The client tries an idempotent request again when the connection was one it kept.
	if _, b, err := get(t, url+path); err == nil && !bytes.Equal(b, all) {
		t.Errorf("cut before the first byte: %d bytes came", len(b))
	}

	fresh(Fault{Spoil: true, SpoilAt: 7000})
	want := bytes.Clone(all)
	want[7000] ^= 1
	if _, b, err := get(t, url+path); err != nil || !bytes.Equal(b, want) {
		t.Errorf("spoiled: %v, %d bytes", err, len(b))
	}
	fresh(Fault{NoRange: true})
	if res, b, err := get(t, url+path, "Range", "bytes=100-"); err != nil || res.StatusCode != 200 || !bytes.Equal(b, all) {
		t.Errorf("a range in spite of NoRange: %v, %d bytes", err, len(b))
	}
	fresh(Fault{Delay: 50 * time.Millisecond, Rate: int64(len(all)) * 10})
	begin := time.Now()
	if _, _, err := get(t, url+path); err != nil || time.Since(begin) < 100*time.Millisecond {
		t.Errorf("slow: took %s, %v", time.Since(begin), err)
	}
	s.Break(path, Fault{Status: 404})
	if res, _, err := get(t, url+path); err != nil || res.StatusCode != 404 {
		t.Errorf("the longer path does not count: %d, %v", res.StatusCode, err)
	}
}

func TestWhatCannotBeMade(t *testing.T) {
	for name, spoil := range map[string]func(*manifest.Lock){
		"no host":   func(l *manifest.Lock) { l.Artifacts[0].Address = "kubelet" },
		"archive":   func(l *manifest.Lock) { l.Artifacts[0].Archive = "zip" },
		"digest":    func(l *manifest.Lock) { l.Images[0].Reference += "@sha256:" + strings.Repeat("0", 64) },
		"reference": func(l *manifest.Lock) { l.Images[0].Reference = "No Name" },
	} {
		l := Sample()
		spoil(l)
		if _, err := New(t.Context(), l, Options{Scale: 0.001}); err == nil {
			t.Errorf("%s: made something", name)
		}
	}
}

func TestWriteFiles(t *testing.T) {
	s, _ := serve(t, Options{})
	dir := filepath.Join(t.TempDir(), "new")
	_, ca, err := Certificate()
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.WriteFiles(dir, "https://127.0.0.1:1", ca)
	if err != nil {
		t.Fatal(err)
	}
	src, err := os.ReadFile(p.Sources)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"dl.k8s.io", "docker.io", "ghcr.io", "github.com", "metallb.github.io", "quay.io", "registry.k8s.io"} {
		if want := "- from: " + h + "\n      to: https://127.0.0.1:1/" + h + "\n"; !strings.Contains(string(src), want) {
			t.Errorf("sources.yaml lacks\n%s", want)
		}
	}
	over, err := os.ReadFile(p.Versions)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range s.Lock().Artifacts {
		if !strings.Contains(string(over), a.SHA256) {
			t.Errorf("versions.yaml lacks the digest of %s", a.ID)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) != 3 {
		t.Errorf("wrote %v, %v", left, err)
	}
}

func TestTLS(t *testing.T) {
	s, _ := serve(t, Options{})
	c, ca, err := Certificate()
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, l) }()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	res, err := client.Get("https://" + l.Addr().String() + "/v2/")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("over TLS: %v", err)
	} else {
		res.Body.Close()
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("stopped with %v", err)
	}
}

package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/file"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/bundletest"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// store is a registry in memory that takes indexes with platforms that are not
// there. It knows no referrers: what refers to a manifest is found by the tag
// that clients then keep.
type store struct {
	mu        sync.Mutex
	blobs     map[string][]byte // by digest
	manifests map[string][]byte // by digest and by tag
	types     map[string]string // media types, by digest and by tag
	uploads   int
	downloads map[string]int
	refuse    func(*http.Request) bool
}

func newStore(t *testing.T) (*store, string) {
	t.Helper()
	s := &store{blobs: map[string][]byte{}, manifests: map[string][]byte{}, types: map[string]string{}, downloads: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, strings.TrimPrefix(server.URL, "http://")
}

// alone runs f while no request is being answered: one that its client gave up may
// still be on its way.
func (s *store) alone(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if s.refuse != nil && s.refuse(r) {
		http.Error(w, `{"errors":[{"code":"DENIED","message":"no"}]}`, http.StatusForbidden)
		return
	}
	_, id, isManifest := strings.Cut(r.URL.Path, "/manifests/")
	_, blob, isBlob := strings.Cut(r.URL.Path, "/blobs/")
	switch {
	case r.URL.Path == "/v2/":
	case isManifest && r.Method == http.MethodPut:
		d := digest.FromBytes(body).String()
		for _, k := range []string{d, id} {
			s.manifests[k], s.types[k] = body, r.Header.Get("Content-Type")
		}
		w.Header().Set("Docker-Content-Digest", d)
		w.WriteHeader(http.StatusCreated)
	case isManifest:
		s.serve(w, r, s.manifests, id, s.types[id])
	case isBlob && r.Method == http.MethodPost:
		w.Header().Set("Location", r.URL.Path+"1")
		w.WriteHeader(http.StatusAccepted)
	case isBlob && r.Method == http.MethodPut:
		d := r.URL.Query().Get("digest")
		if digest.FromBytes(body).String() != d {
			http.Error(w, "different content", http.StatusBadRequest)
			return
		}
		s.blobs[d] = body
		s.uploads++
		w.WriteHeader(http.StatusCreated)
	case isBlob:
		s.serve(w, r, s.blobs, blob, "application/octet-stream")
	default:
		http.NotFound(w, r)
	}
}

func (s *store) serve(w http.ResponseWriter, r *http.Request, from map[string][]byte, id, mediaType string) {
	b, ok := from[id]
	if !ok {
		http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"unknown"}]}`, http.StatusNotFound)
		return
	}
	if r.Method == http.MethodGet {
		s.downloads[id]++
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(b).String())
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// pushed is a built archive and the place it was pushed to.
func pushed(t *testing.T, path string, to Remote) *PushResult {
	t.Helper()
	p, err := tryPush(t, path, to)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func tryPush(t *testing.T, path string, to Remote) (*PushResult, error) {
	t.Helper()
	b, err := bundle.Open(t.Context(), path, anyone)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	return Push(t.Context(), b, to, PushOptions{Parallel: 2})
}

// pull fetches into an archive of its own.
func pull(t *testing.T, from Remote, cache *fetch.Cache, policy bundle.Policy) (string, error) {
	t.Helper()
	client, err := fetch.New(fetch.Options{Cache: cache, Sources: from.Sources(), Backoff: time.Millisecond, Attempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "pulled.tar.zst")
	_, err = Pull(t.Context(), PullRequest{From: from, Policy: policy, Output: path, Cache: cache, Client: client, Parallel: 2})
	return path, err
}

func place(t *testing.T, host string) Remote {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(config, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return Remote{Reference: host + "/team/demo:1", PlainHTTP: true, DockerConfig: config}
}

func TestPushedAndPulledIsTheSameBytes(t *testing.T) {
	w := bundletest.New(t)
	path := build(t, w)
	lines := []byte(`{"mediaType":"a","n":1}` + "\n" + `{"mediaType":"b"}` + "\n")
	for name, signatures := range map[string][]byte{"unsigned": nil, "signed": lines} {
		t.Run(name, func(t *testing.T) {
			if err := archive.WriteSignatures(path, signatures); err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, host := newStore(t)
			p := pushed(t, path, place(t, host))
			if p.Signatures != bytes.Count(signatures, []byte("\n")) || p.AlreadyPresent != 0 {
				t.Errorf("pushed %+v", p)
			}
			if got := digest.FromBytes(s.manifests["1"]); got != p.Root {
				t.Errorf("the tag names %s, the root is %s", got, p.Root)
			}
			out, err := pull(t, place(t, host), bundletest.OpenCache(t), anyone)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(out)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("the pulled archive has other bytes (%v)", err)
			}
			before := s.uploads
			if p := pushed(t, path, place(t, host)); p.Sent > 1+p.Signatures || s.uploads != before {
				t.Errorf("pushed again: %+v, %d uploads", p, s.uploads-before)
			}
			if len(signatures) == 0 {
				return
			}
			// A verifier is asked about the root before anything is fetched.
			s.downloads = map[string]int{}
			if _, err := pull(t, place(t, host), bundletest.OpenCache(t), bundle.Policy{Verifier: verdict{errors.New("forged")}}); !errors.Is(err, bundle.ErrUntrusted) {
				t.Errorf("forged: %v", err)
			}
			if s.downloads[p.Root.String()] != 0 {
				t.Error("the root was fetched before its signature was looked at")
			}
		})
	}
}

func TestInterruptedPushAndPullAreContinued(t *testing.T) {
	w := bundletest.New(t)
	path := build(t, w)
	s, host := newStore(t)
	puts := 0
	s.refuse = func(r *http.Request) bool {
		if r.Method == http.MethodPut {
			puts++
		}
		return r.Method == http.MethodPut && puts > 3
	}
	if _, err := tryPush(t, path, place(t, host)); err == nil {
		t.Fatal("pushed to who refuses")
	}
	had := 0
	s.alone(func() {
		if s.manifests["1"] != nil {
			t.Error("a tag names a bundle that is not whole")
		}
		had, s.refuse = s.uploads, nil
	})
	if had == 0 {
		t.Fatal("nothing was taken before the refusal")
	}
	if p := pushed(t, path, place(t, host)); p.AlreadyPresent < had {
		t.Errorf("%+v, though the registry held %d", p, had)
	}

	gets := 0
	s.alone(func() {
		s.refuse = func(r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				gets++
			}
			return gets > 6
		}
	})
	cache := bundletest.OpenCache(t)
	if out, err := pull(t, place(t, host), cache, anyone); err == nil {
		t.Fatal("pulled from who refuses")
	} else if _, err := os.Stat(out); err == nil {
		t.Error("half an archive stands")
	}
	s.alone(func() { s.refuse, s.downloads = nil, map[string]int{} })
	if _, err := pull(t, place(t, host), cache, anyone); err != nil {
		t.Fatal(err)
	}
	all := 0
	for d := range s.blobs {
		all += min(1, s.downloads[d])
	}
	if all >= len(s.blobs) {
		t.Errorf("all %d blobs were fetched again", all)
	}
}

func TestPullRefuses(t *testing.T) {
	w := bundletest.New(t)
	path := build(t, w)
	s, host := newStore(t)
	to := place(t, host)
	pushed(t, path, to)
	if _, err := pull(t, to, bundletest.OpenCache(t), bundle.Policy{}); !errors.Is(err, bundle.ErrUntrusted) {
		t.Errorf("unsigned: %v", err)
	}
	absent := to
	absent.Reference = host + "/team/demo:2"
	if _, err := pull(t, absent, bundletest.OpenCache(t), anyone); !errors.Is(err, ErrNoBundle) {
		t.Errorf("absent: %v", err)
	}
	for ref, what := range map[string]string{host + "/team/demo": "no tag", "demo": "missing registry", host + "/Team:1": "invalid repository"} {
		bad := to
		bad.Reference = ref
		var wrong *ReferenceError
		if _, err := pull(t, bad, bundletest.OpenCache(t), anyone); !errors.As(err, &wrong) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	byDigest := to
	byDigest.Reference = host + "/team/demo@" + digest.FromBytes(s.manifests["1"]).String()
	if _, err := pull(t, byDigest, bundletest.OpenCache(t), anyone); err != nil {
		t.Errorf("by digest: %v", err)
	}
	var wrong *ReferenceError
	if _, err := tryPush(t, path, byDigest); !errors.As(err, &wrong) {
		t.Errorf("pushed by digest: %v", err)
	}
	// An image in place of a bundle.
	s.manifests["3"], s.types["3"] = []byte(`{"schemaVersion":2,"mediaType":"`+v1.MediaTypeImageIndex+`","manifests":[]}`), v1.MediaTypeImageIndex
	s.manifests[digest.FromBytes(s.manifests["3"]).String()], s.types[digest.FromBytes(s.manifests["3"]).String()] = s.manifests["3"], v1.MediaTypeImageIndex
	image := to
	image.Reference = host + "/team/demo:3"
	var format *bundle.FormatError
	if _, err := pull(t, image, bundletest.OpenCache(t), anyone); !errors.As(err, &format) {
		t.Errorf("no bundle: %v", err)
	}
	// A blob with different content.
	for d, b := range s.blobs {
		if len(b) > 1<<20 {
			s.blobs[d] = bytes.Repeat([]byte{1}, len(b))
		}
	}
	if out, err := pull(t, to, bundletest.OpenCache(t), anyone); err == nil {
		t.Error("forged blobs were taken")
	} else if _, serr := os.Stat(out); serr == nil {
		t.Error("an archive stands")
	}
}

// TestStrictRegistryRefusesGaps: most registries want every platform that an
// index names; the error says what to do.
func TestStrictRegistryRefusesGaps(t *testing.T) {
	w := bundletest.New(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	_, err := tryPush(t, build(t, w), place(t, strings.TrimPrefix(server.URL, "http://")))
	var sparse *SparseError
	if !errors.As(err, &sparse) {
		t.Errorf("%v", err)
	}
}

func TestPlainHTTPOnlyIfSet(t *testing.T) {
	w := bundletest.New(t)
	path := build(t, w)
	s, host := newStore(t)
	to := place(t, host)
	to.PlainHTTP = false
	b, err := bundle.Open(t.Context(), path, anyone)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // it would try again for longer
	defer cancel()
	if _, err := Push(ctx, b, to, PushOptions{}); err == nil || s.uploads > 0 {
		t.Errorf("spoke plain HTTP unasked: %v", fmt.Sprint(err))
	}
}

// TestDeltaThroughARegistry: what arrives of a delta and its base is the whole
// bundle, and comes back as that.
func TestDeltaThroughARegistry(t *testing.T) {
	old := bundletest.New(t)
	base := build(t, old)
	held, err := bundle.Open(t.Context(), base, anyone)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := held.Payload()
	if err := errors.Join(err, held.Close()); err != nil {
		t.Fatal(err)
	}
	since := &manifest.Inventory{Cluster: "demo", Blobs: map[string]manifest.BlobLocation{}, Registry: manifest.InventoryRegistry{State: manifest.RegistryAbsent},
		Bundles: []manifest.InventoryBundle{{Root: held.Root.Digest.String(), File: filepath.Base(base), Bytes: held.Size()}}}
	for _, x := range payload {
		since.Blobs[x.Digest] = manifest.InBundle
	}
	w := old.Newer(t, 1<<18)
	part := filepath.Join(t.TempDir(), "delta.tar.zst")
	if _, err := bundle.Build(t.Context(), bundle.BuildRequest{Lock: w.Lock, Config: w.Config, Output: part, Cache: w.Cache, Fetcher: w, Parallel: 2, Since: since}); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(t.Context(), part, anyone, base)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, host := newStore(t)
	if _, err := Push(t.Context(), b, place(t, host), PushOptions{Parallel: 2}); err != nil {
		t.Fatal(err)
	}
	out, err := pull(t, place(t, host), bundletest.OpenCache(t), anyone)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, out), readFile(t, build(t, w))) {
		t.Error("what was pulled is not the whole bundle")
	}
}

func TestPackagesThroughARegistry(t *testing.T) {
	w := bundletest.New(t)
	for _, arch := range []string{"amd64", "arm64"} {
		a := manifest.Artifact{
			ID: "packages/debian-12/12/linux/" + arch, Kind: manifest.Packages, Name: "debian-12", Version: "12", Sets: w.Lock.Artifacts[0].Sets,
			Platform: manifest.Platform{OS: "linux", Arch: arch, Distribution: "debian", Release: "12"}, Trust: manifest.FromPublished,
			Packages: &manifest.PackageSet{Format: manifest.Deb, Want: []string{"tool"}, Date: w.Lock.Created},
		}
		for _, name := range []string{"Packages", "pool/lib_1_" + arch + ".deb", "pool/tool_2.0-1_" + arch + ".deb", "pool/words_3_all.deb"} {
			m := manifest.Member{Path: name, Name: name, Size: int64(len(name)), SHA256: w.Put([]byte(name))}
			if filepath.Ext(name) == ".deb" {
				m.Package, m.Address, m.Record = strings.TrimSuffix(filepath.Base(name), ".deb")+" ("+arch+")", "https://deb.example/"+name, "Package: x"
			}
			a.Members = append(a.Members, m)
		}
		w.Lock.Artifacts = append(w.Lock.Artifacts, a)
	}
	path := build(t, w)
	s, host := newStore(t)
	pushed(t, path, place(t, host))
	titles := 0
	for _, m := range s.manifests {
		titles += bytes.Count(m, []byte(`"org.opencontainers.image.title":"pool/`))
	}
	if titles != 6 {
		t.Errorf("%d layers are titled with their paths", titles)
	}
	// Who pulls the artifact with oras has the repository's folders, inside of its own.
	repo, err := place(t, host).repository()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for d, m := range s.manifests {
		if !bytes.Contains(m, []byte("tool_2.0-1_amd64.deb")) {
			continue
		}
		to, err := file.New(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := oras.Copy(t.Context(), repo, d, to, "", oras.DefaultCopyOptions); err != nil {
			t.Fatal(err)
		}
		if err := to.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"Packages", "pool/words_3_all.deb"} {
		if len(readFile(t, filepath.Join(dir, name))) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	out, err := pull(t, place(t, host), bundletest.OpenCache(t), anyone)
	if err != nil || !bytes.Equal(readFile(t, path), readFile(t, out)) {
		t.Errorf("pulled: %v", err)
	}
}

var anyone = bundle.Policy{AllowUnsigned: true}

// verdict is a Verifier that has decided.
type verdict struct{ err error }

func (v verdict) Verify(context.Context, v1.Descriptor, []byte) ([]bundle.AcceptedSignature, error) {
	return nil, v.err
}

func build(t *testing.T, w *bundletest.Upstream) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	if _, err := bundle.Build(t.Context(), bundle.BuildRequest{Lock: w.Lock, Config: w.Config, Output: path, Cache: w.Cache, Fetcher: w, Parallel: 2}); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

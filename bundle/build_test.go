package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/bundle/bundletest"
	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// world is an upstream whose lock is built here.
type world struct{ *bundletest.Upstream }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{bundletest.New(t)}
}

func (w *world) newer(t *testing.T, size int) *world {
	t.Helper()
	return &world{w.Newer(t, size)}
}

func unpinned() *manifest.Lock { return bundletest.Unpinned() }

func openCache(t *testing.T) *fetch.Cache {
	t.Helper()
	return bundletest.OpenCache(t)
}

func (w *world) build(t *testing.T, parallel int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	_, err := Build(context.Background(), BuildRequest{Lock: w.Lock, Config: w.Config, Output: path, Cache: w.Cache, Fetcher: w, Parallel: parallel})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buildAt builds at path and returns the archive.
func (w *world) buildAt(t *testing.T, path string) []byte {
	t.Helper()
	if _, err := Build(t.Context(), BuildRequest{Lock: w.Lock, Config: w.Config, Output: path, Cache: w.Cache, Fetcher: w, Parallel: 2}); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var anyone = Policy{AllowUnsigned: true}

func TestBuildIsTheSameBytesEachTime(t *testing.T) {
	w := newWorld(t)
	first, err := os.ReadFile(w.build(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	warm, err := os.ReadFile(w.build(t, 8))
	if err != nil {
		t.Fatal(err)
	}
	w.Cache = openCache(t)
	cold, err := os.ReadFile(w.build(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, warm) || !bytes.Equal(first, cold) {
		t.Error("three builds of one lock differ")
	}
}

func TestOpenReturnsWhatWasBuilt(t *testing.T) {
	w := newWorld(t)
	path := w.build(t, 2)
	b, err := Verify(context.Background(), path, anyone, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if !bytes.Equal(b.Config, w.Config) || b.Lock.Serial != w.Lock.Serial || b.Signed || b.Summary.Files != 3 {
		t.Errorf("config %q, serial %d, signed %v, %d files", b.Config, b.Lock.Serial, b.Signed, b.Summary.Files)
	}
	dir := filepath.Join(t.TempDir(), "files")
	if n, err := b.ExtractFiles(context.Background(), dir, ExtractOptions{}); err != nil || n != 3 {
		t.Fatal(n, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "runc", "linux-amd64", "a"))
	if err != nil || !bytes.Equal(got, w.Blobs[w.Lock.Artifacts[1].Members[0].SHA256]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	var exists *ExistsError
	if _, err := b.ExtractFiles(context.Background(), dir, ExtractOptions{}); !errors.As(err, &exists) {
		t.Errorf("a folder that is not empty: %v", err)
	}
	if _, err := b.ExtractFiles(context.Background(), filepath.Join(t.TempDir(), "new"), ExtractOptions{Names: []string{"nginx"}}); err == nil {
		t.Error("a name that is not there was extracted")
	}
}

func TestPolicy(t *testing.T) {
	path := newWorld(t).build(t, 2)
	if _, err := Open(context.Background(), path, Policy{}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("the zero policy: %v", err)
	}
	if err := archive.WriteSignatures(path, []byte("{\"a\":1}\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), path, Policy{}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("signed, without a key: %v", err)
	}
	if _, err := Open(context.Background(), path, Policy{Verifier: verdict{errors.New("no")}, AllowUnsigned: true}); !errors.Is(err, ErrUntrusted) {
		t.Errorf("a wrong signature counts for more than --allow-unsigned: %v", err)
	}
	b, err := Open(context.Background(), path, Policy{Verifier: verdict{}})
	if err != nil {
		t.Fatal(err)
	}
	if !b.Signed || b.Close() != nil {
		t.Error("signed is not told")
	}
}

type verdict struct{ err error }

func (v verdict) Verify(context.Context, v1.Descriptor, []byte) ([]AcceptedSignature, error) {
	return nil, v.err
}

func TestCorruptCacheIsFetchedAgain(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	r := BuildRequest{Lock: w.Lock, Config: w.Config, Output: path, Cache: w.Cache, Fetcher: w, Parallel: 2, KeepCache: true}
	if _, err := Build(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{w.Lock.Artifacts[0].SHA256, w.Image[3].Digest[7:]} { // one compressed, one stored
		path := filepath.Join(w.Cache.Dir(), "sha256", name[:2], name)
		b := bytes.Clone(w.Blobs[name])
		b[len(b)/2] ^= 1
		if err := errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, b, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	w.Fetched = nil
	if w.Cache, err = fetch.OpenCache(w.Cache.Dir()); err != nil { // of another run: it has hashed nothing yet
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".moved"); err != nil { // the bundle would do too
		t.Fatal(err)
	}
	r.Cache = w.Cache
	if _, err := Build(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) || len(w.Fetched) != 2 {
		t.Errorf("same bytes: %v; fetched again: %v", bytes.Equal(want, got), w.Fetched)
	}
}

// lacking is a world without kubelet: fetching it fails once a layer has been read.
type lacking struct {
	*world
	layer string
}

func (l lacking) StreamArtifact(a manifest.Artifact) fetch.Stream {
	if a.Name != "kubelet" {
		return l.world.StreamArtifact(a)
	}
	return func(context.Context, fetch.Sink) error {
		for !l.HasFetched(l.layer) {
			time.Sleep(time.Millisecond)
		}
		return errors.New("there is no kubelet")
	}
}

// TestFailedBuildIsContinued: a build without one file leaves no archive, and nothing comes
// twice once the file is there.
func TestFailedBuildIsContinued(t *testing.T) {
	w := newWorld(t)
	layer := w.Image[3].Digest[7:]
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	_, err := Build(context.Background(), BuildRequest{Lock: w.Lock, Config: w.Config, Output: path, Cache: w.Cache, Fetcher: lacking{w, layer}, Parallel: 2})
	if err == nil || !strings.Contains(err.Error(), "binary/kubelet") {
		t.Errorf("%v", err)
	}
	var unfinished *UnfinishedError
	if _, serr := os.Stat(path); serr == nil || !errors.As(err, &unfinished) || unfinished.Path != path+".partial" || unfinished.Bytes == 0 {
		t.Errorf("an archive exists: %v, or what is left is not told: %+v", serr, unfinished)
	}
	w.Fetched = nil
	if got := w.buildAt(t, path); slices.Contains(w.Fetched, layer) {
		t.Errorf("fetched again: %v", w.Fetched)
	} else if w.Cache = openCache(t); !bytes.Equal(got, w.buildAt(t, filepath.Join(t.TempDir(), "y"))) {
		t.Error("the bytes differ from those of an undisturbed build")
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := Build(context.Background(), BuildRequest{Lock: w.Lock, Config: []byte("other"), Output: path, Cache: w.Cache, Fetcher: w}); err == nil {
		t.Error("a config that the lock was not made for was built")
	}
}

// An archive can be whole, byte by byte, and still not be what its lock says:
// its maker was another program. Each of these is refused by Open.
func TestOpenRefusesOddBundles(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(w *world, h *head, blobs *[]archive.Blob)
		want string
	}{
		"a blob too many": {func(w *world, _ *head, blobs *[]archive.Blob) {
			*blobs = append(*blobs, archive.Blob{Digest: "sha256:" + w.Put([]byte("odd")), Size: 3})
		}, "is not referenced by anything"},
		"a blob too few": {func(w *world, _ *head, blobs *[]archive.Blob) {
			*blobs = dropBlob(*blobs, w.Image[3].Digest)
		}, "is missing"},
		"a platform too few": {func(w *world, _ *head, blobs *[]archive.Blob) {
			for _, i := range []int{1, 2, 3} {
				*blobs = dropBlob(*blobs, w.Image[i].Digest)
			}
		}, "is pinned by the lock but missing in the bundle"},
		"two roots": {func(_ *world, h *head, _ *[]archive.Blob) {
			h.index = bytes.Replace(h.index, []byte(`"manifests":[`), []byte(`"manifests":[`+descriptorText(h)+`,`), 1)
		}, "lists 2 manifests"},
		"a root of another type": {func(_ *world, h *head, _ *[]archive.Blob) {
			h.index = bytes.Replace(h.index, []byte(v1.MediaTypeImageIndex+`","digest`), []byte(v1.MediaTypeImageManifest+`","digest`), 1)
		}, "as its root"},
		"index.json with more in it": {func(_ *world, h *head, _ *[]archive.Blob) {
			h.index = append(bytes.TrimSpace(h.index), []byte(` {}`)...)
		}, "follows the JSON value"},
		"another config": {func(w *world, h *head, _ *[]archive.Blob) {
			l := w.Lock.Clone()
			other, err := newHead(l, []byte("kind: Other\n"))
			if err != nil {
				panic(err)
			}
			*h = *other
		}, "its config has digest"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path := w.write(t, c.edit)
			_, err := Open(context.Background(), path, anyone)
			var format *FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func descriptorText(h *head) string {
	b, err := json.Marshal(h.root.descriptor)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func dropBlob(bs []archive.Blob, d string) []archive.Blob {
	var out []archive.Blob
	for _, b := range bs {
		if b.Digest != d {
			out = append(out, b)
		}
	}
	return out
}

// write makes an archive by hand, after edit changed what goes into it.
func (w *world) write(t *testing.T, edit func(*world, *head, *[]archive.Blob)) string {
	t.Helper()
	ctx := context.Background()
	h, err := newHead(w.Lock, w.Config)
	if err != nil {
		t.Fatal(err)
	}
	var blobs []archive.Blob
	all, err := jobs(ctx, w, w.Lock, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range all {
		blobs = append(blobs, j.blobs...)
	}
	for _, d := range h.artifacts {
		blobs = append(blobs, archive.Blob{Digest: d.descriptor.Digest.String(), Size: int64(len(d.bytes))})
		w.Put(d.bytes)
	}
	edit(w, h, &blobs)
	contents := [][]byte{h.root.bytes}
	for _, d := range h.metadata {
		contents = append(contents, d.bytes)
	}
	layout, err := archive.NewLayout(ociLayout, h.index, contents, blobs)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "odd.tar.zst")
	aw, err := archive.Create(path, layout, archive.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blobs {
		if !b.Compress {
			if err := aw.WriteStored(ctx, b.Digest, bytes.NewReader(w.Blobs[hexOf(b.Digest)])); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = aw.Close(ctx, func(_ context.Context, d string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(w.Blobs[hexOf(d)])), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBuildInVolumes(t *testing.T) {
	w := newWorld(t)
	whole, err := os.ReadFile(w.build(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "v.tar.zst")
	b, err := Build(t.Context(), BuildRequest{Lock: w.Lock, Config: w.Config, Output: path, Cache: w.Cache, Fetcher: w, Parallel: 2,
		Volumes: archive.VolumeOptions{VolumeSize: 1 << 20, Parity: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if b.Path != path+".001" || b.Bytes != int64(len(whole)) || b.Volumes < 2 {
		t.Errorf("built %+v, the archive has %d bytes", b, len(whole))
	}
	v, err := Verify(t.Context(), b.Path, anyone, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if v.Root.Digest != b.Root || v.Size() != b.Bytes {
		t.Errorf("root %s of %d bytes, want %s of %d", v.Root.Digest, v.Size(), b.Root, b.Bytes)
	}
	if err := os.Remove(path + ".002"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), b.Path, anyone); !errors.Is(err, archive.ErrVolume) || !strings.Contains(err.Error(), "v.tar.zst.002: the volume is missing") {
		t.Errorf("without the second volume: %v", err)
	}
	if _, err := archive.Repair(t.Context(), b.Path, nil); err != nil {
		t.Fatal(err)
	}
	to, err := Join(t.Context(), b.Path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if joined, err := os.ReadFile(to); err != nil || !bytes.Equal(joined, whole) {
		t.Errorf("%s is not what was built whole: %v", to, err)
	}
}

// TestAFileEqualToAGeneratedDocument: an artifact has the bytes of a document that the
// bundle makes itself, OCI's empty config, as images of bare artifacts do.
func TestAFileEqualToAGeneratedDocument(t *testing.T) {
	w := newWorld(t)
	m := &w.Lock.Artifacts[1].Members[1]
	m.SHA256, m.Size = w.Put(v1.DescriptorEmptyJSON.Data), v1.DescriptorEmptyJSON.Size
	b, err := Open(t.Context(), w.build(t, 2), Policy{AllowUnsigned: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	rc, n, err := b.Blob("sha256:" + m.SHA256)
	if err != nil || n != m.Size {
		t.Fatal(n, err)
	}
	defer rc.Close()
	if got, err := io.ReadAll(rc); err != nil || string(got) != "{}" {
		t.Errorf("%q, %v", got, err)
	}
}

package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
)

// TestRememberedBundleIsASource: a later build takes blobs from the bundle of an earlier one,
// as long as it is unchanged; what is damaged in it is fetched again.
func TestRememberedBundleIsASource(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "x.tar.zst")
	want := w.buildAt(t, path)
	fetched := len(w.Fetched)
	again := func(t *testing.T) (fetched []string) {
		t.Helper()
		w.Fetched = nil
		if got := w.buildAt(t, filepath.Join(dir, "again.tar.zst")); !bytes.Equal(got, want) {
			t.Error("other bytes than the first time")
		}
		if err := os.Remove(filepath.Join(dir, "again.tar.zst")); err != nil {
			t.Fatal(err)
		}
		return w.Fetched
	}
	if got := again(t); len(got) != 0 || fetched < 4 {
		t.Errorf("fetched again of %d: %v", fetched, got)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(want)
	for _, name := range []string{w.Image[3].Digest[7:], w.Lock.Artifacts[0].SHA256} { // one stored, one compressed
		at := bytes.Index(damaged, w.Blobs[name][:64])
		if at < 0 {
			at = len(damaged) - len(damaged)/10 // among the compressed
		}
		damaged[at+32] ^= 1
	}
	if err := errors.Join(os.WriteFile(path, damaged, 0o644), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	if got := again(t); !slices.Contains(got, w.Image[3].Digest[7:]) || len(got) >= fetched {
		t.Errorf("of a damaged bundle, fetched of %d: %v", fetched, got)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil { // another time: perhaps another file
		t.Fatal(err)
	}
	if got := again(t); len(got) < 3 {
		t.Errorf("of a bundle that was written again, fetched: %v", got)
	}
	if all, err := w.Cache.Archives(); err != nil || len(all) != 0 {
		t.Errorf("remembered: %v, %v", all, err)
	}
}

// TestUnfinishedBuildOfAnotherBundle: its downloads are not lost.
func TestUnfinishedBuildOfAnotherBundle(t *testing.T) {
	w := newWorld(t)
	layer := w.Image[3].Digest[7:]
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	_, err := Build(t.Context(), BuildRequest{Lock: w.Lock, Config: w.Config, Output: path, Cache: w.Cache, Fetcher: lacking{w, layer}, Parallel: 2})
	if _, ok := errors.AsType[*UnfinishedError](err); !ok {
		t.Fatal(err)
	}
	n := w.newer(t, 1<<20) // has that layer too
	n.Cache = w.Cache
	got := n.buildAt(t, path)
	if slices.Contains(n.Fetched, layer) {
		t.Errorf("fetched again: %v", n.Fetched)
	}
	n.Cache = openCache(t)
	if !bytes.Equal(got, n.buildAt(t, filepath.Join(t.TempDir(), "y"))) {
		t.Error("other bytes than of an undisturbed build")
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestCacheAfterABuild: it has what is read again, and with KeepCache everything.
func TestCacheAfterABuild(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w := newWorld(t)
		if _, err := Build(t.Context(), BuildRequest{
			Lock: w.Lock, Config: w.Config, Output: filepath.Join(t.TempDir(), "x"), Cache: w.Cache, Fetcher: w, Parallel: 2, KeepCache: keep,
		}); err != nil {
			t.Fatal(err)
		}
		all, err := w.Cache.List()
		if err != nil {
			t.Fatal(err)
		}
		want := 3 // index, manifest and config of the image
		if keep {
			want = len(w.Blobs)
		}
		if len(all) != want {
			t.Errorf("keep %v: %d blobs in the cache, want %d", keep, len(all), want)
		}
	}
}

// TestEntriesOfArchivesFarApart builds from archives whose entries are far apart in the
// bundle's order.
func TestEntriesOfArchivesFarApart(t *testing.T) {
	for _, parallel := range []int{1, 4} {
		w := newWorld(t)
		var members []manifest.Member
		for i := range 40 {
			b := bytes.Repeat([]byte{byte(i)}, 1000+i)
			members = append(members, manifest.Member{Path: fmt.Sprint("m", i), Name: fmt.Sprint("m", i), SHA256: w.Put(b), Size: int64(len(b))})
		}
		for i := range 8 {
			a := w.Lock.Artifacts[1]
			a.ID, a.Name, a.Members = fmt.Sprint("binary/x", i), fmt.Sprint("x", i), members[i*5:i*5+5]
			w.Lock.Artifacts = append(w.Lock.Artifacts, a)
		}
		path := filepath.Join(t.TempDir(), "x")
		r := BuildRequest{Lock: w.Lock, Config: w.Config, Output: path, Cache: w.Cache, Fetcher: extracted{w}, Parallel: parallel}
		if _, err := Build(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		b, err := Verify(t.Context(), path, anyone, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = b.Close()
	}
}

// extracted fetches all entries of an archive, whether the cache has some or not.
type extracted struct{ *world }

func (e extracted) FetchArtifact(ctx context.Context, a manifest.Artifact) error {
	for _, b := range a.Blobs() {
		if err := e.Cache.Put(ctx, b.SHA256, b.Size, bytes.NewReader(e.Blobs[b.SHA256])); err != nil {
			return err
		}
	}
	return nil
}

func (e extracted) StreamArtifact(manifest.Artifact) fetch.Stream { return nil }

func (e extracted) UnpackArtifact(manifest.Artifact) fetch.Unpack { return nil }

package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/bundle/bundletest"
	"github.com/mensylisir/kubexm/manifest"
)

var (
	hexA = strings.Repeat("a", 64)
	hexB = strings.Repeat("b", 64)
	hexC = strings.Repeat("c", 64)

	linux = bundletest.Linux
)

// upstream pins everything and records what was requested.
type upstream struct {
	mu    sync.Mutex
	asked []string
	fail  map[string]error
}

func (u *upstream) ask(id string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, id)
	return u.fail[id]
}

func (u *upstream) PinArtifact(_ context.Context, a manifest.Artifact) (manifest.Artifact, error) {
	if a.SHA256 == "" {
		a.SHA256, a.Trust = hexB, manifest.FromPublished
	}
	a.Size = 10
	return a, u.ask(a.ID)
}

func (u *upstream) PinImage(_ context.Context, im manifest.ImagePin, ps []manifest.Platform) (manifest.ImagePin, error) {
	im.Digest, im.Size, im.MediaType = "sha256:"+hexC, 5, "application/vnd.oci.image.index.v1+json"
	im.Platforms = nil
	for _, p := range ps {
		im.Platforms = append(im.Platforms, manifest.PlatformImage{Platform: p, Digest: "sha256:" + hexC, Size: 6, Content: 7, MediaType: "m"})
	}
	return im, u.ask(im.ID)
}

var noon = bundletest.Noon

func pinnedLock(t *testing.T) *manifest.Lock {
	t.Helper()
	l, err := Pin(context.Background(), &upstream{}, unpinned(), PinOptions{Parallel: 2, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPinQueriesOnlyMissingPins(t *testing.T) {
	first := pinnedLock(t)
	if first.Serial != 20260506120000 || first.Created.Nanosecond() != 0 {
		t.Errorf("serial %d, created %v", first.Serial, first.Created)
	}
	resolved := unpinned()
	resolved.Config = "sha256:" + hexB
	resolved.Artifacts[1].Address = "https://example.com/runc-2"
	adopted, changes := Adopt(resolved, first)
	want := []string{
		"binary/runc: address https://example.com/runc is now https://example.com/runc-2",
		"config: sha256:" + hexA + " is now sha256:" + hexB,
	}
	if diff := cmp.Diff(want, texts(changes)); diff != "" {
		t.Error(diff)
	}
	u := &upstream{}
	second, err := Pin(context.Background(), u, adopted, PinOptions{Now: noon, Previous: first.Serial})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"binary/runc"}, u.asked); diff != "" {
		t.Error(diff)
	}
	if second.Serial != first.Serial+1 {
		t.Errorf("serial went from %d to %d, and has to grow within one second too", first.Serial, second.Serial)
	}
}

func TestPinReportsEveryFailure(t *testing.T) {
	gone := errors.New("gone")
	u := &upstream{fail: map[string]error{"binary/kubelet": gone, "image/pause": gone}}
	_, err := Pin(context.Background(), u, unpinned(), PinOptions{Parallel: 2, Now: noon})
	if !errors.Is(err, gone) {
		t.Fatal(err)
	}
	for _, id := range []string{"binary/kubelet", "image/pause"} {
		if !strings.Contains(err.Error(), id) {
			t.Errorf("%s is not named in %v", id, err)
		}
	}
	if len(u.asked) != 3 {
		t.Errorf("only %v were asked for", u.asked)
	}
}

func TestPinStopsOnCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Pin(ctx, &upstream{}, unpinned(), PinOptions{Now: noon}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestAdoptKeepsAMatchingLock(t *testing.T) {
	first := pinnedLock(t)
	got, changes := Adopt(unpinned(), first)
	if got != first || len(changes) != 0 {
		t.Errorf("changes %v", changes)
	}
	if _, changes := Adopt(unpinned(), nil); len(changes) == 0 {
		t.Error("no lock at all answers the config")
	}
}

func TestAdoptReportsEveryChange(t *testing.T) {
	first := pinnedLock(t)
	arm := manifest.Platform{OS: "linux", Arch: "arm64"}
	for _, c := range []struct {
		name string
		edit func(*manifest.Lock)
		want string
		pins int // entries whose pins are kept
	}{
		{"added", func(l *manifest.Lock) { l.Images = append(l.Images, manifest.ImagePin{ID: "image/etcd"}) }, "image/etcd: added", 3},
		{"removed", func(l *manifest.Lock) { l.Artifacts = l.Artifacts[:1] }, "binary/runc: removed", 2},
		{"digest", func(l *manifest.Lock) { l.Artifacts[0].SHA256 = hexC }, "binary/kubelet: sha256 " + hexA + " is now " + hexC, 2},
		{"archive", func(l *manifest.Lock) { l.Artifacts[0].Archive = "tar.gz" }, "other archive entries", 2},
		{"published", func(l *manifest.Lock) { l.Artifacts[1].DigestAddress = "" }, "published at another address", 2},
		{"sets", func(l *manifest.Lock) { l.Artifacts[1].Sets = []string{"v1"} }, "sets [v1.32.2] are now [v1]", 3},
		{"image digest", func(l *manifest.Lock) { l.Images[0].Digest = "sha256:" + hexA }, "digest sha256:" + hexC, 2},
		{"platforms", func(l *manifest.Lock) { l.Platforms = append(l.Platforms, arm) }, "image/pause: platforms [linux/amd64] are now [linux/amd64 linux/arm64]", 2},
		{"names", func(l *manifest.Lock) { l.Images[0].Names = []string{"sandbox"} }, "names differ", 3},
		{"cluster", func(l *manifest.Lock) { l.Cluster = "other" }, "cluster: demo is now other", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			resolved := unpinned()
			c.edit(resolved)
			l, changes := Adopt(resolved, first)
			if !slices.ContainsFunc(texts(changes), func(s string) bool { return strings.Contains(s, c.want) }) {
				t.Errorf("%q is not in %q", c.want, texts(changes))
			}
			pins := 0
			for _, a := range l.Artifacts {
				if pinnedArtifact(a) {
					pins++
				}
			}
			for _, im := range l.Images {
				if pinnedImage(im) {
					pins++
				}
			}
			if pins != c.pins {
				t.Errorf("%d pins are kept, want %d", pins, c.pins)
			}
		})
	}
}

func texts(cs []Change) []string {
	var out []string
	for _, c := range cs {
		out = append(out, fmt.Sprint(c))
	}
	return out
}

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/upstream"
)

// artifact finds the first artifact for which is holds.
func artifact(t *testing.T, l *manifest.Lock, is func(manifest.Artifact) bool) manifest.Artifact {
	t.Helper()
	for _, a := range l.Artifacts {
		if is(a) {
			return a
		}
	}
	t.Fatal("the lock has no such artifact")
	return manifest.Artifact{}
}

func plain(a manifest.Artifact) bool  { return a.Kind == manifest.Binary && a.Archive == "" }
func packed(a manifest.Artifact) bool { return a.Archive != "" }

// refusedBuild runs a build that has to be refused with all of the words, and
// that must leave no archive.
func (s *site) refusedBuild(t *testing.T, args []string, words ...string) {
	t.Helper()
	r := s.run(t, args)
	if r.code != 4 {
		t.Errorf("exit %d, want 4\n%s", r.code, r.stderr)
	}
	for _, w := range words {
		if !strings.Contains(r.stderr, w) {
			t.Errorf("does not say %s:\n%s", w, r.stderr)
		}
	}
	if left := finished(t, filepath.Dir(args[len(args)-1])); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// A file that upstream changed is refused with both digests: against the lock
// that pins it, and against the catalog when there is no lock yet. When it is
// what it was, the same build goes on and gives the bytes it always gave.
func TestChangedFilesAreRefused(t *testing.T) {
	for name, is := range map[string]func(manifest.Artifact) bool{"file": plain, "archive": packed} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, 0.01)
			control := filepath.Join(s.newFolder(t, "control"), "bundle.tar.zst")
			s.must(t, s.build(control, filepath.Join(s.dir, "cache-0"))...)
			a := artifact(t, s.pinned(t), is)
			s.change(t, a.Address, "later")
			now := artifact(t, s.up.Lock(), func(b manifest.Artifact) bool { return b.ID == a.ID })
			both := []string{a.ID, a.SHA256, now.SHA256}

			path, cache := filepath.Join(s.newFolder(t, "out"), "bundle.tar.zst"), filepath.Join(s.dir, "cache-1")
			s.refusedBuild(t, s.build(path, cache), both...)

			given := s.lock
			s.lock = filepath.Join(s.dir, "new.lock")
			s.refusedBuild(t, without(s.build(path, filepath.Join(s.dir, "cache-2")), "--locked"), both...)

			s.lock = given
			s.change(t, a.Address, "")
			s.must(t, s.build(path, cache)...)
			if got, want := hash(t, path), hash(t, control); got != want {
				t.Errorf("after the change was taken back: sha256 %s, want %s", got, want)
			}
		})
	}
}

func without(args []string, word string) []string {
	var rest []string
	for _, a := range args {
		if a != word {
			rest = append(rest, a)
		}
	}
	return rest
}

func (s *site) change(t *testing.T, address, salt string) {
	t.Helper()
	if known, err := s.up.Change(address, salt); err != nil || !known {
		t.Fatalf("change %s: known %v, %v", address, known, err)
	}
}

// A registry that serves other bytes under a digest is refused, whichever part
// of an image they belong to.
func TestChangedImagesAreRefused(t *testing.T) {
	s := newSite(t, 0.01)
	p := s.pinned(t).Images[0]
	repo := p.Reference[:strings.LastIndex(p.Reference, ":")]
	first := p.Platforms[0]
	for name, at := range map[string]string{
		"index":    "/v2/" + repo + "/manifests/" + p.Digest,
		"manifest": "/v2/" + repo + "/manifests/" + first.Digest,
		"blobs":    "/v2/" + repo + "/blobs/",
	} {
		t.Run(name, func(t *testing.T) {
			s.up.Mend()
			s.up.Break(at, upstream.Fault{Spoil: true, SpoilAt: 40})
			dir := s.newFolder(t, "out-"+name)
			r := s.run(t, s.build(filepath.Join(dir, "bundle.tar.zst"), filepath.Join(s.dir, "cache-"+name)))
			if r.code != 4 || strings.Count(r.stderr, "sha256") < 2 {
				t.Errorf("exit %d, want 4 and both digests\n%s", r.code, r.stderr)
			}
			if left := finished(t, dir); len(left) != 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

// A tag that moved after the lock changes nothing: images are fetched by digest.
func TestMovedTagChangesNothing(t *testing.T) {
	s := newSite(t, 0.01)
	dir := s.newFolder(t, "out")
	one, two := filepath.Join(dir, "one.tar.zst"), filepath.Join(dir, "two.tar.zst")
	s.must(t, s.build(one, filepath.Join(s.dir, "cache-1"))...)
	for _, p := range s.pinned(t).Images {
		s.change(t, p.Reference, "later")
	}
	s.must(t, s.build(two, filepath.Join(s.dir, "cache-2"))...)
	if hash(t, one) != hash(t, two) {
		t.Error("the bytes differ")
	}
}

// What an upstream does on a bad day, a build outlasts: the bytes are the same.
func TestBadDays(t *testing.T) {
	s := newSite(t, 0.02)
	dir := s.newFolder(t, "out")
	control := filepath.Join(dir, "control.tar.zst")
	s.must(t, s.build(control, filepath.Join(s.dir, "cache-0"))...)
	l := s.pinned(t)
	a := artifact(t, l, plain)
	file := "/" + strings.TrimPrefix(a.Address, "https://")
	for name, f := range map[string]upstream.Fault{
		"busy":        {Times: 2, Status: http.StatusServiceUnavailable, RetryAfter: "0"},
		"too many":    {Times: 2, Status: http.StatusTooManyRequests, RetryAfter: "1"},
		"cut":         {Times: 3, CutAfter: 2000},
		"cut at once": {Times: 2, CutAfter: -1},
		"no ranges":   {Times: 2, CutAfter: 2000, NoRange: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.up.Mend()
			s.up.Break(file, f)
			s.up.Break("/v2/", f)
			path := filepath.Join(dir, "bundle.tar.zst")
			s.must(t, s.build(path, filepath.Join(s.dir, "cache-"+name))...)
			if hash(t, path) != hash(t, control) {
				t.Error("the bytes differ")
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		})
	}
}

package delta

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/archive"
	"github.com/mensylisir/kubexm/manifest"
)

// TestAnnotationsRoundTrip: text that is not a digest is refused.
func TestAnnotationsRoundTrip(t *testing.T) {
	one, two := digest.FromString("1"), digest.FromString("2")
	for _, want := range []*Delta{nil, {Cluster: "demo", Held: one}, {Cluster: "demo", Bases: []digest.Digest{one, two}, Held: two}} {
		got, err := Read(want.Annotations())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	}
	for _, bad := range []*Delta{{Held: "x"}, {Held: digest.Digest("sha512:" + strings.Repeat("a", 128))}, {Held: one, Bases: []digest.Digest{"sha256:x"}}} {
		if _, err := Read(bad.Annotations()); err == nil || !strings.Contains(err.Error(), "for the base of a delta") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestCarry: a site's registry serves layers and no files, its bundles both, and
// documents are always carried.
func TestCarry(t *testing.T) {
	s := Savings{}
	for _, x := range []struct {
		part  Part
		where manifest.BlobLocation
		want  bool
	}{
		{File, "", true}, {File, manifest.InRegistry, true}, {File, manifest.InBundle, false},
		{Layer, "", true}, {Layer, manifest.InRegistry, false}, {Layer, manifest.InBoth, false},
		{Document, manifest.InBoth, true},
	} {
		if s.Includes(x.part, 10, x.where) != x.want {
			t.Errorf("part %d that is in %q: carried %t", x.part, x.where, !x.want)
		}
	}
	if want := (Savings{Blobs: 3, Bytes: 30, AllBlobs: 6, AllBytes: 60}); s != want {
		t.Errorf("counted %+v, want %+v", s, want)
	}
}

// TestRest: a blob with a source is no longer absent, and the source's content is compared
// with the digest.
func TestRest(t *testing.T) {
	text := map[string]string{}
	r := NewOmittedBlobs()
	for _, s := range []string{"first", "second", "third"} {
		d := digest.FromString(s).String()
		text[d] = s
		r.Absent[d] = int64(len(s))
	}
	second, third := digest.FromString("second").String(), digest.FromString("third").String()
	text[second] = "forged"
	r.AddUncheckedSource("place", map[string]bool{digest.FromString("first").String(): true, second: true}, func(d string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text[d])), nil
	})
	if len(r.Absent) != 1 || r.Absent[third] != 5 || len(r.Sourced) != 2 {
		t.Fatalf("absent %v, given %v", r.Absent, r.Sourced)
	}
	for s, bad := range map[string]bool{"first": false, "second": true} {
		rc, n, err := r.Open(digest.FromString(s).String())
		if err != nil || n != int64(len(s)) {
			t.Fatal(n, err)
		}
		got, err := io.ReadAll(rc)
		if bad && (!errors.Is(err, archive.ErrDigest) || !strings.HasPrefix(err.Error(), "place: ")) || !bad && (err != nil || string(got) != s) {
			t.Errorf("%s: %q, %v", s, got, err)
		}
	}
	r.AddSource("broken", func(string, int64) bool { return true }, func(string) (io.ReadCloser, int64, error) { return nil, 0, io.ErrClosedPipe })
	if _, _, err := r.Open(third); !errors.Is(err, io.ErrClosedPipe) || !strings.HasPrefix(err.Error(), "broken: ") {
		t.Error(err)
	}
}

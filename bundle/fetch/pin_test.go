package fetch

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
)

func TestParseDigestFile(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	at := "https://dl.example.com/v1/linux/amd64/tool.tar.gz?x=1"
	tests := []struct{ name, text, want, err string }{
		{"digest alone", a, a, ""},
		{"digest and newline", a + "\r\n", a, ""},
		{"upper case", strings.ToUpper(a), a, ""},
		{"with algorithm", "sha256:" + a, a, ""},
		{"byte order mark", "\ufeff" + a + "\n", a, ""},
		{"sha256sum", a + "  tool.tar.gz\n", a, ""},
		{"sha256sum, binary", a + " *tool.tar.gz\n", a, ""},
		{"sha256sum of standard input", a + "  -\n", a, ""},
		{"with a tab", a + "\ttool.tar.gz", a, ""},
		{"with a folder", a + "  ./dist/tool.tar.gz", a, ""},
		{"many lines", b + "  other\n" + a + "  tool.tar.gz\n" + b + "  tool.tar.gz.sbom\n", a, ""},
		{"folders decide", b + "  linux/arm64/tool.tar.gz\n" + a + "  linux/amd64/tool.tar.gz\n", a, ""},
		{"BSD", "SHA256 (tool.tar.gz) = " + a + "\n", a, ""},
		{"BSD, many", "MD5 (tool.tar.gz) = 00\nSHA256 (other) = " + b + "\nSHA256 (tool.tar.gz) = " + a, a, ""},
		{"signed", "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n" + a + "  tool.tar.gz\n-----BEGIN PGP SIGNATURE-----\niQ\n", a, ""},
		{"same twice", a + "  tool.tar.gz\n" + a + "  tool.tar.gz\n", a, ""},
		{"sha512 beside", strings.Repeat("c", 128) + "  tool.tar.gz\n" + a + "  tool.tar.gz\n", a, ""},
		{"another file", a + "  tool-arm64.tar.gz\n", "", "contains no sha256 for tool.tar.gz, but for tool-arm64.tar.gz"},
		{"several without names", a + "\n" + b + "\n", "", "no sha256 for tool.tar.gz"},
		{"two answers", a + "  x/tool.tar.gz\n" + b + "  y/tool.tar.gz\n", "", "2 different sha256"},
		{"empty", "", "", "contains no sha256"},
		{"a page", "<html>" + a + "</html>", "", "contains no sha256"},
		{"sha1", strings.Repeat("a", 40), "", "contains no sha256"},
		{"one character short", a[1:], "", "contains no sha256"},
		{"not hex", "g" + a[1:], "", "contains no sha256"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseDigestFile([]byte(test.text), at)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %q, %v; want an error with %q", got, err, test.err)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func FuzzParseDigestFile(f *testing.F) {
	a := strings.Repeat("a", 64)
	for _, s := range []string{a, a + "  f", "SHA256 (f) = " + a, a + " *x/f\n" + a + "  y/f", "", "\ufeff\n", "SHA256 (", a + "  ../f"} {
		f.Add([]byte(s), "https://h/x/f")
	}
	f.Fuzz(func(t *testing.T, text []byte, at string) {
		got, err := parseDigestFile(text, at)
		if err == nil && (!isHexDigest(got) || !strings.Contains(strings.ToLower(string(text)), got)) {
			t.Errorf("read %q", got)
		}
	})
}

func TestPinFile(t *testing.T) {
	content := noise(5, 5000)
	digestFile := func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(sum(content) + "  thing\n"))
	}
	tests := []struct {
		name     string
		change   func(*manifest.Artifact)
		file     http.HandlerFunc
		trust    manifest.Trust
		download bool
		err      string
	}{
		{name: "digest known", file: served(content, ""), trust: manifest.FromCatalog},
		{name: "HEAD refused", trust: manifest.FromCatalog, file: func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			served(content, "")(w, r)
		}},
		{name: "HEAD says nothing, ranges ignored", trust: manifest.FromCatalog, file: func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.Header().Set("Content-Length", "0")
				return
			}
			announce(w, content, "")
			_, _ = w.Write(content)
		}},
		{name: "no size anywhere", trust: manifest.FromCatalog, download: true, file: func(w http.ResponseWriter, r *http.Request) {
			flush(w)
			_, _ = w.Write(content)
		}},
		{name: "no size, and another file", err: "expected " + sum(content), file: func(w http.ResponseWriter, r *http.Request) {
			flush(w)
			_, _ = w.Write(content[1:])
		}},
		{name: "gone", file: status(404), err: "404 Not Found"},
		{name: "busy at first", file: inSequence(status(503), served(content, "")), trust: manifest.FromCatalog},
		{name: "digest published", file: served(content, ""), trust: manifest.FromPublished, change: func(a *manifest.Artifact) {
			a.SHA256, a.Trust, a.DigestAddress = "", "", address("sum")
		}},
		{name: "digest file gone", file: served(content, ""), err: "read the published digest", change: func(a *manifest.Artifact) {
			a.SHA256, a.Trust, a.DigestAddress = "", "", address("nowhere")
		}},
		{name: "digest file too long", file: served(content, ""), err: "too many for a digest file", change: func(a *manifest.Artifact) {
			a.SHA256, a.Trust, a.DigestAddress = "", "", address("long")
		}},
		{name: "nobody vouches", file: served(content, `"a"`), trust: manifest.FromContent, download: true, change: func(a *manifest.Artifact) {
			a.SHA256, a.Trust = "", ""
		}},
		{name: "bad digest", file: served(content, ""), err: "is not a sha256", change: func(a *manifest.Artifact) { a.SHA256 = "abc" }},
		{name: "bad address", file: served(content, ""), err: "is not an http address", change: func(a *manifest.Artifact) { a.Address = "ftp://other.test/x" }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/thing":
					test.file(w, r)
				case "/sum":
					digestFile(w, r)
				case "/long":
					_, _ = w.Write(make([]byte, digestFileBytes+1))
				default:
					http.NotFound(w, r)
				}
			})
			o := options(t, u)
			a := plainFile(content)
			a.Size, a.Trust = 0, manifest.FromCatalog
			if test.change != nil {
				test.change(&a)
			}
			got, err := client(t, o).PinArtifact(t.Context(), a)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one with %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := a
			want.Size, want.SHA256, want.Trust = int64(len(content)), sum(content), test.trust
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("pinned (-want +got):\n%s", diff)
			}
			if o.Cache.Has(got.SHA256, got.Size) != test.download {
				t.Errorf("in the cache: %t, want %t", !test.download, test.download)
			}
			mustBeClean(t, o.Cache)
		})
	}
}

func TestPinFileKnownToTheCache(t *testing.T) {
	content := noise(5, 5000)
	u := serve(t, served(content, ""))
	o := options(t, u)
	c, a := client(t, o), plainFile(content)
	if err := c.FetchArtifact(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	u.Close()
	a.Size = 0
	if a, err := c.PinArtifact(t.Context(), a); err != nil || a.Size != int64(len(content)) {
		t.Errorf("%v, %+v", err, a)
	}
}

// TestPinArchiveWithoutDigest has nobody vouch for an archive: it is believed as
// it comes, and its digest from then on is known.
func TestPinArchiveWithoutDigest(t *testing.T) {
	b := pack(t, "tar.gz", entry{"a", "aa"})
	u := serve(t, served(b, ""))
	o := options(t, u)
	a := archiveOf(b, "tar.gz", "a")
	a.SHA256, a.Trust = "", ""
	got, err := client(t, o).PinArtifact(t.Context(), a)
	if err != nil || got.SHA256 != sum(b) || got.Trust != manifest.FromContent || got.Size != int64(len(b)) || got.Members[0].SHA256 != sum([]byte("aa")) {
		t.Fatalf("%v, %+v", err, got)
	}
	if a.Members[0].SHA256 != "" {
		t.Error("the caller's members were changed")
	}
	mustHold(t, o.Cache, []byte("aa"))
}

// TestUnknownDigestIsNotContinuedBlindly: without a digest only the server's
// word that the file is the same lets a partial file be continued.
func TestUnknownDigestIsNotContinuedBlindly(t *testing.T) {
	old, content := noise(6, 5000), noise(7, 5000)
	for _, etag := range []string{"", `W/"weak"`, `"old"`} {
		u := serve(t, inSequence(half(old, etag), served(content, `"new"`)))
		o := options(t, u)
		a := plainFile(content)
		a.SHA256, a.Size = "", 0
		got, err := client(t, o).PinArtifact(t.Context(), a)
		if err != nil || got.SHA256 != sum(content) {
			t.Errorf("ETag %s: %v, %s", etag, err, got.SHA256)
		}
	}
	// A weak ETag may stay while bytes change, and some servers take it for a range.
	// Others pass over If-Range.
	for before, after := range map[string]string{`W/"same"`: `W/"same"`, `"old"`: `"new"`} {
		u := serve(t, inSequence(half(old, before), func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-Range")
			served(content, after)(w, r)
		}))
		a := plainFile(content)
		a.SHA256, a.Size = "", 0
		if got, err := client(t, options(t, u)).PinArtifact(t.Context(), a); err != nil || got.SHA256 != sum(content) {
			t.Errorf("ETag %s: %v, %s", before, err, got.SHA256)
		}
	}
	u := serve(t, inSequence(half(content, `"same"`), served(content, `"same"`)))
	a := plainFile(content)
	a.SHA256, a.Size = "", 0
	if _, err := client(t, options(t, u)).PinArtifact(t.Context(), a); err != nil || u.bytesSent() != 5000 {
		t.Errorf("%v, %d bytes sent, want 5000", err, u.bytesSent())
	}
}

// TestUnknownDigestIsNotContinuedAfterPowerLoss: what another run left may have holes
// where the disk kept the size alone, and no digest would tell.
func TestUnknownDigestIsNotContinuedAfterPowerLoss(t *testing.T) {
	content := noise(7, 5000)
	u := serve(t, inSequence(half(content, `"same"`), http.NotFound, served(content, `"same"`)))
	o := options(t, u)
	a := plainFile(content)
	a.SHA256, a.Size = "", 0
	if _, err := client(t, o).PinArtifact(t.Context(), a); err == nil {
		t.Fatal("no error from a server that has no rest of the file")
	}
	left, err := filepath.Glob(o.Cache.partial("*" + partSuffix))
	if err != nil || len(left) != 1 {
		t.Fatalf("%q, %v", left, err)
	}
	text, err := os.ReadFile(left[0])
	if err != nil {
		t.Fatal(err)
	}
	clear(text[:1000])
	write(t, left[0], text)
	got, err := client(t, o).PinArtifact(t.Context(), a)
	if err != nil || got.SHA256 != sum(content) {
		t.Errorf("%v, pinned %s", err, got.SHA256)
	}
}

func TestOpenCacheSweeps(t *testing.T) {
	dir := t.TempDir()
	c, err := OpenCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := func(name string, hours int) string {
		path := c.partial(name)
		write(t, path, []byte("x"))
		at := fileTime(t, path).Add(-hoursOf(hours))
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gone := []string{old("write-1", 25), old("a.part", 24*31), old("a.part.meta", 24*31)}
	kept := []string{old("write-2", 23), old("b.part", 24*29), old("c.lock", 24*365)}
	if _, err := OpenCache(dir); err != nil {
		t.Fatal(err)
	}
	for _, p := range gone {
		if _, err := os.Stat(p); err == nil {
			t.Errorf("%s is still there", filepath.Base(p))
		}
	}
	for _, p := range kept {
		if _, err := os.Stat(p); err != nil {
			t.Errorf("%s is gone", filepath.Base(p))
		}
	}
}

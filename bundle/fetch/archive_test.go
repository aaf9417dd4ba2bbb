package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/mensylisir/kubexm/manifest"
)

// entry is one of a test archive; a name ending in / is a folder, a link has a
// leading -> (symbolic) or => (hard).
type entry struct{ name, content string }

func pack(t testing.TB, format string, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	var z io.WriteCloser
	switch format {
	case "tar":
		z = uncompressed{&b}
	case "tar.zst":
		var err error
		if z, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	default:
		z = gzip.NewWriter(&b)
	}
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o755, Typeflag: tar.TypeReg, Size: int64(len(e.content))}
		body := e.content
		if to, ok := strings.CutPrefix(e.content, "->"); ok {
			h.Typeflag, h.Linkname, h.Size, body = tar.TypeSymlink, to, 0, ""
		} else if to, ok := strings.CutPrefix(e.content, "=>"); ok {
			h.Typeflag, h.Linkname, h.Size, body = tar.TypeLink, to, 0, ""
		} else if e.content == "fifo" {
			h.Typeflag, h.Size, body = tar.TypeFifo, 0, ""
		} else if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type uncompressed struct{ io.Writer }

func (uncompressed) Close() error { return nil }

func archiveOf(content []byte, format string, members ...string) manifest.Artifact {
	a := manifest.Artifact{
		ID: "binary/tool/1/linux/amd64", Kind: manifest.Binary, Name: "tool", Version: "1",
		Address: address("tool." + format), Archive: format, SHA256: sum(content), Trust: manifest.FromCatalog,
	}
	for _, m := range members {
		a.Members = append(a.Members, manifest.Member{Path: m, Name: m})
	}
	return a
}

func TestArchiveMembers(t *testing.T) {
	for _, format := range []string{"tar", "tar.gz", "tgz", "tar.zst"} {
		t.Run(format, func(t *testing.T) {
			b := pack(t, format, entry{"./", ""}, entry{"./bin/", ""}, entry{"./bin/a", "content of a"},
				entry{"bin/b", "content of b"}, entry{"bin/link", "->a"}, entry{"bin/hard", "=>bin/b"}, entry{"early", "->bin/../late"}, entry{"late", "content of late"},
				entry{"unwanted", "->/etc/passwd"})
			u := serve(t, served(b, `"a"`))
			o := options(t, u)
			c := client(t, o)
			a, err := c.PinArtifact(t.Context(), archiveOf(b, format, "bin/a", "./bin/b", "bin/link", "bin/hard", "early"))
			if err != nil {
				t.Fatal(err)
			}
			want := archiveOf(b, format)
			want.Size = int64(len(b))
			for _, m := range []entry{{"bin/a", "content of a"}, {"./bin/b", "content of b"}, {"bin/link", "content of a"}, {"bin/hard", "content of b"}, {"early", "content of late"}} {
				want.Members = append(want.Members, manifest.Member{Path: m.name, Name: m.name, Size: int64(len(m.content)), SHA256: sum([]byte(m.content))})
				mustHold(t, o.Cache, []byte(m.content))
			}
			if diff := cmp.Diff(want, a); diff != "" {
				t.Errorf("pinned (-want +got):\n%s", diff)
			}
			// All of it is known now: neither call below may need the network.
			u.Close()
			again, err := c.PinArtifact(t.Context(), archiveOf(b, format, "bin/a", "bin/link"))
			if err != nil || again.Size != a.Size || again.Members[1].SHA256 != sum([]byte("content of a")) {
				t.Errorf("second pin: %v, %+v", err, again)
			}
			if err := c.FetchArtifact(t.Context(), a); err != nil {
				t.Error(err)
			}
			if o.Cache.Has(a.SHA256, a.Size) {
				t.Error("the archive itself is in the cache")
			}
		})
	}
}

func TestArchiveIsFetchedAgainForMissingEntries(t *testing.T) {
	b := pack(t, "tar.gz", entry{"a", "aa"}, entry{"b", "bb"})
	u := serve(t, served(b, ""))
	o := options(t, u)
	c := client(t, o)
	if _, err := c.PinArtifact(t.Context(), archiveOf(b, "tar.gz", "a")); err != nil {
		t.Fatal(err)
	}
	a, err := c.PinArtifact(t.Context(), archiveOf(b, "tar.gz", "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Cache.Discard(sum([]byte("aa"))); err != nil {
		t.Fatal(err)
	}
	if err := c.FetchArtifact(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	mustHold(t, o.Cache, []byte("aa"))
	if got := u.asked("GET"); got != 3 {
		t.Errorf("%d downloads, want 3", got)
	}
	if got := o.Cache.readDerived(a.SHA256).Members; len(got) != 2 {
		t.Errorf("record %+v, want both members", got)
	}
}

// TestArchiveCutIsContinued checks that archives have the resuming of any file.
func TestArchiveCutIsContinued(t *testing.T) {
	b := pack(t, "tar.gz", entry{"a", string(noise(3, 100<<10))})
	u := serve(t, inSequence(half(b, `"a"`), served(b, `"a"`)))
	o := options(t, u)
	if _, err := client(t, o).PinArtifact(t.Context(), archiveOf(b, "tar.gz", "a")); err != nil {
		t.Fatal(err)
	}
	if got := u.bytesSent(); got != int64(len(b)) {
		t.Errorf("%d bytes sent, want %d", got, len(b))
	}
}

func TestArchiveOfAnotherDigestIsNotUnpacked(t *testing.T) {
	b := pack(t, "tar.gz", entry{"a", "aa"})
	u := serve(t, served(b, ""))
	o := options(t, u)
	a := archiveOf([]byte("another"), "tar.gz", "a")
	_, err := client(t, o).PinArtifact(t.Context(), a)
	if e, ok := errors.AsType[*DigestError](err); !ok || e.Got != sum(b) {
		t.Fatalf("error %v, want a DigestError", err)
	}
	if o.Cache.Has(sum([]byte("aa")), 2) {
		t.Error("its member is in the cache")
	}
}

func TestMemberOfAnotherDigest(t *testing.T) {
	b := pack(t, "tar.gz", entry{"a", "aa"}, entry{"b", "bb"})
	u := serve(t, served(b, ""))
	o := options(t, u)
	a := archiveOf(b, "tar.gz", "a", "b")
	a.Size = int64(len(b))
	a.Members[0].SHA256, a.Members[0].Size = sum([]byte("aa")), 2
	a.Members[1].SHA256, a.Members[1].Size = sum([]byte("xx")), 2
	for _, f := range []func() error{
		func() error { return client(t, o).FetchArtifact(t.Context(), a) },
		func() error { _, err := client(t, o).PinArtifact(t.Context(), a); return err },
	} {
		err := f()
		e, ok := errors.AsType[*DigestError](err)
		if !ok || e.Want != sum([]byte("xx")) || e.Got != sum([]byte("bb")) || !strings.Contains(e.Name, "entry b") {
			t.Errorf("error %v, want a DigestError for entry b", err)
		}
	}
	if o.Cache.Has(sum([]byte("bb")), 2) || o.Cache.Has(sum([]byte("aa")), 2) {
		t.Error("members of the archive are in the cache")
	}
}

func TestHostileArchives(t *testing.T) {
	bomb := pack(t, "tar.gz", entry{"big", strings.Repeat("\x00", 1<<20)}, entry{"a", "aa"})
	many := []entry{{"a", "aa"}}
	for i := range 60 {
		many = append(many, entry{"f" + itoa(i), ""})
	}
	good := pack(t, "tar.gz", entry{"a", strings.Repeat("some text ", 1000)})
	tests := []struct {
		name    string
		archive []byte
		want    string
		err     string
	}{
		{"climbs", pack(t, "tar.gz", entry{"../a", "aa"}, entry{"a", "aa"}), "a", "points outside the archive"},
		{"climbs in the middle", pack(t, "tar.gz", entry{"x/../../a", "aa"}, entry{"a", "aa"}), "a", "points outside the archive"},
		{"absolute", pack(t, "tar.gz", entry{"/etc/passwd", "aa"}, entry{"a", "aa"}), "a", "not a relative file name"},
		{"wanted climbs", pack(t, "tar.gz", entry{"a", "aa"}), "../a", "selected entry"},
		{"wanted is absolute", pack(t, "tar.gz", entry{"a", "aa"}), "/a", "selected entry"},
		{"missing", pack(t, "tar.gz", entry{"bin/containerd", "x"}, entry{"bin/ctr", "x"}, entry{"LICENSE", "x"}), "containerd", "has no entry containerd; similar names are bin/containerd, bin/ctr, LICENSE"},
		{"holds nothing", pack(t, "tar.gz"), "a", "it contains no files"},
		{"wanted is a folder", pack(t, "tar.gz", entry{"a/", ""}), "a", "not a regular file"},
		{"wanted is a fifo", pack(t, "tar.gz", entry{"a", "fifo"}), "a", "not a regular file"},
		{"absolute link", pack(t, "tar.gz", entry{"a", "->/etc/passwd"}), "a", "links outside the archive"},
		{"climbing link", pack(t, "tar.gz", entry{"x/a", "->../../b"}, entry{"b", "x"}), "x/a", "links outside the archive"},
		{"climbing hard link", pack(t, "tar.gz", entry{"a", "=>../b"}, entry{"b", "x"}), "a", "links outside the archive"},
		{"link to nothing", pack(t, "tar.gz", entry{"a", "->b"}), "a", "links to b, which is not in the archive"},
		{"link to a folder", pack(t, "tar.gz", entry{"a", "->b"}, entry{"b/", ""}), "a", "b is not a regular file"},
		{"links in a circle", pack(t, "tar.gz", entry{"a", "->b"}, entry{"b", "->a"}), "a", "reaches no file"},
		{"link to itself", pack(t, "tar.gz", entry{"a", "->a"}), "a", "reaches no file"},
		{"twice", pack(t, "tar.gz", entry{"a", "aa"}, entry{"./a", "bb"}), "a", "occurs twice"},
		{"file and link", pack(t, "tar.gz", entry{"a", "aa"}, entry{"b", "x"}, entry{"a", "->b"}), "a", "occurs twice"},
		{"link to a file that occurs twice", pack(t, "tar.gz", entry{"a", "->b"}, entry{"b", "x"}, entry{"b", "y"}), "a", "occurs twice"},
		{"member too large", bomb, "big", "entry big: unpacks to more than 65536 bytes"},
		{"whole too large", bomb, "a", "unpacks to more than 524288 bytes"},
		{"too many entries", pack(t, "tar.gz", many...), "a", "more than 50 entries"},
		{"not packed at all", []byte("<html>not here</html>"), "a", "gzip"},
		{"cut short", good[:len(good)/2], "a", "unexpected EOF"},
		{"checksum wrong", append(bytes.Clone(good[:len(good)-8]), make([]byte, 8)...), "a", "checksum"},
		{"garbage inside", gzipped(t, noise(4, 5000)), "a", "archive/tar"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			u := serve(t, served(test.archive, ""))
			o := options(t, u)
			c := client(t, o)
			c.limits = limits{entries: 50, member: 64 << 10, total: 512 << 10}
			a := archiveOf(test.archive, "tar.gz", test.want)
			_, err := c.PinArtifact(t.Context(), a)
			if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), a.Address) {
				t.Errorf("error %v, want one with %q and the address", err, test.err)
			}
			if blobs := blobsOf(t, o.Cache); len(blobs) > 0 {
				t.Errorf("left in the cache: %v", blobs)
			}
			if left, _ := filepath.Glob(o.Cache.partial(writePrefix + "*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestUnknownArchiveFormat(t *testing.T) {
	u := serve(t, served([]byte("x"), ""))
	_, err := client(t, options(t, u)).PinArtifact(t.Context(), archiveOf([]byte("x"), "zip", "a"))
	if err == nil || !strings.Contains(err.Error(), `unknown format "zip"`) {
		t.Errorf("error %v", err)
	}
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// blobsOf lists the blobs of a cache.
func blobsOf(t *testing.T, c *Cache) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(c.Dir(), "sha256", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func FuzzDecodeDerived(f *testing.F) {
	name := strings.Repeat("a", 64)
	f.Add([]byte(`{"version":1,"archive":"` + name + `","size":3,"members":[{"path":"a","size":1,"sha256":"` + name + `"}]}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"archive":"` + name + `","size":-1,"members":null}{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeDerived(bytes.NewReader(b), name)
		if err != nil {
			return
		}
		if d.Archive != name || d.Version != derivedVersion || d.Size < 0 {
			t.Errorf("took %+v", d)
		}
		for _, m := range d.Members {
			if m.Path == "" || m.Size < 0 || !isHexDigest(m.SHA256) {
				t.Errorf("took member %+v", m)
			}
		}
	})
}

func TestBrokenRecordIsIgnored(t *testing.T) {
	b := pack(t, "tar.gz", entry{"a", "aa"})
	for _, record := range []string{"", "{", `{"version":9}`, `{"version":1,"archive":"` + sum([]byte("x")) + `","size":1,"members":[]}`} {
		u := serve(t, served(b, ""))
		o := options(t, u)
		write(t, o.Cache.derivedPath(sum(b)), []byte(record))
		a, err := client(t, o).PinArtifact(t.Context(), archiveOf(b, "tar.gz", "a"))
		if err != nil || a.Members[0].SHA256 != sum([]byte("aa")) {
			t.Errorf("record %q: %v, %+v", record, err, a)
		}
		if _, err := os.Stat(o.Cache.derivedPath(sum(b))); err != nil || o.Cache.readDerived(sum(b)).Archive == "" {
			t.Errorf("record %q was not written anew", record)
		}
	}
}

// FuzzExtract gives the extraction any bytes as a tar. Nothing may appear but
// files that wait to be committed, within the limits.
func FuzzExtract(f *testing.F) {
	f.Add(pack(f, "tar", entry{"a", "aa"}), "a")
	f.Add(pack(f, "tar", entry{"x/", ""}, entry{"x/a", "->../b"}, entry{"b", "=>c"}, entry{"c", "cc"}), "x/a")
	f.Add(pack(f, "tar", entry{"../a", "aa"}), "../a")
	f.Add(pack(f, "tar", entry{"a", strings.Repeat("a", 900)}), "a")
	f.Add(pack(f, "tar", entry{"a", "fifo"}), "./a")
	cache, err := OpenCache(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "archive")
	f.Fuzz(func(t *testing.T, b []byte, wanted string) {
		write(t, path, b)
		x := &extraction{path: path, format: "tar", create: func(context.Context, string) (entryFile, error) { return cache.newBlob() }, limits: limits{entries: 20, member: 800, total: 100_000}}
		if err := x.run(t.Context(), []string{wanted}); err == nil {
			if w := x.found[wanted]; w == nil || w.length() > 800 {
				t.Errorf("%q gives %+v", wanted, w)
			}
		}
		x.abort()
		mustBeClean(t, cache)
		if blobs := blobsOf(t, cache); len(blobs) > 0 {
			t.Errorf("left %v", blobs)
		}
	})
}

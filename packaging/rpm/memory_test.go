package rpm

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// memory is a Web of what is in memory, by address.
type memory map[string][]byte

func (m memory) Open(_ context.Context, url string) (io.ReadCloser, error) {
	b, ok := m[url]
	if !ok {
		return nil, fmt.Errorf("404: %w", fs.ErrNotExist)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// put lays a folder at an address.
func (m memory) put(t *testing.T, address, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		m[address+filepath.ToSlash(strings.TrimPrefix(path, dir))] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fixture is testdata/repo at https://a.test/repo, with the keys beside it.
func fixture(t *testing.T) memory {
	t.Helper()
	m := memory{}
	m.put(t, "https://a.test/repo", "testdata/repo")
	m.put(t, "file:///keys", "testdata/keys")
	return m
}

// name gives the one address that has a part in it.
func (m memory) name(t *testing.T, part string) string {
	t.Helper()
	for a := range m {
		if strings.Contains(a, part) {
			return a
		}
	}
	t.Fatalf("nothing has %s in its name", part)
	return ""
}

// now is when the tests read: after testdata/repo was signed.
var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

var options = Options{Arch: "x86_64", Now: now}

func packed(t testing.TB, kind string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch kind {
	case "gz":
		w = gzip.NewWriter(&b)
	case "zst":
		w, err = zstd.NewWriter(&b)
	case "xz": // what TestUpdateFixture has packed
		p, err := os.ReadFile(fmt.Sprintf("testdata/xz/%x.xz", sha256.Sum256(content)))
		if err != nil {
			t.Fatal(err)
		}
		return p
	case "none":
		return content
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// repository lays down a repository of what its files hold: "primary", "filelists",
// "modules".
func (m memory) repository(t testing.TB, address, compression string, content map[string]string) Repository {
	t.Helper()
	var b strings.Builder
	b.WriteString(`<repomd xmlns="` + repoSpace + `">`)
	for kind, c := range content {
		p := packed(t, compression, []byte(c))
		name := "repodata/" + kind + "." + compression
		m[address+"/"+name] = p
		fmt.Fprintf(&b, `<data type="%s"><checksum type="sha256">%x</checksum><open-checksum type="sha256">%x</open-checksum><location href="%s"/><size>%d</size><open-size>%d</open-size></data>`,
			kind, sha256.Sum256(p), sha256.Sum256([]byte(c)), name, len(p), len(c))
	}
	b.WriteString(`</repomd>`)
	m[address+"/repodata/repomd.xml"] = []byte(b.String())
	return Repository{ID: strings.TrimPrefix(address, "https://"), Bases: []string{address}, Priority: 99}
}

// primaryOf writes primary.xml of packages, each "name version-release [arch]" and
// then what is put into its format.
func primaryOf(packages ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?><metadata xmlns="%s" xmlns:rpm="%s" packages="%d">`, commonSpace, rpmSpace, len(packages))
	for _, p := range packages {
		head, format, _ := strings.Cut(p, "; ")
		f := append(strings.Fields(head), "x86_64")
		l := splitRelease(f[1])
		fmt.Fprintf(&b, "\n"+`<package type="rpm"><name>%s</name><arch>%s</arch><version epoch="0" ver="%s" rel="%s"/><checksum type="sha256" pkgid="YES">%x</checksum>`+
			`<size package="10" installed="1" archive="1"/><location href="Packages/%s-%s.%s.rpm"/><format>%s</format></package>`,
			f[0], f[2], l.rest, l.release, sha256.Sum256([]byte(head)), f[0], f[1], f[2], format)
	}
	return b.String() + "</metadata>"
}

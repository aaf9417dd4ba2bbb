package rpm

import (
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/packaging"
)

func entriesOf(t *testing.T, web packaging.Web, r Repository, names ...string) []*packaging.Package {
	t.Helper()
	o := options
	o.Names = names
	m, err := Read(t.Context(), web, []Repository{r}, o)
	if err != nil {
		t.Fatal(err)
	}
	var all []*packaging.Package
	m.each(func(e *entry) { all = append(all, &e.Package) })
	return all
}

// TestWrite writes some of testdata/repo, and reads the same of it.
func TestWrite(t *testing.T) {
	var some []*packaging.Package
	for _, p := range entriesOf(t, fixture(t), signedRepository, "/usr/bin/ls", "bash-completion") {
		if p.Name != "openssl-libs" {
			some = append(some, p)
		}
	}
	files, err := Write(some, now)
	if err != nil {
		t.Fatal(err)
	}
	backwards := append([]*packaging.Package(nil), some...)
	for i, j := 0, len(some)-1; i < j; i, j = i+1, j-1 {
		backwards[i], backwards[j] = backwards[j], backwards[i]
	}
	again, err := Write(backwards, now)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(files, again); d != "" {
		t.Error("equal packages gave other bytes")
	}
	var b strings.Builder
	m := memory{}
	for _, f := range files {
		m["https://b.test/"+f.Name] = f.Content
		if content := f.Content; strings.HasSuffix(f.Name, ".gz") {
			z, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if content, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
			_, name, _ := strings.Cut(f.Name, "-")
			fmt.Fprintf(&b, "==== %s\n%s", name, content)
		}
	}
	golden(t, "testdata/write.golden", b.String())

	read := entriesOf(t, m, Repository{ID: "test", Bases: []string{"https://b.test"}}, "/usr/bin/ls", "bash-completion")
	byName := map[string]*packaging.Package{}
	for _, p := range some {
		q := *p
		q.Location, q.Record = Place(p), nil
		byName[q.String()] = &q
	}
	for _, p := range read {
		p.Record = nil
		if d := cmp.Diff(byName[p.String()], p); d != "" {
			t.Error(d)
		}
	}
	if len(read) != len(some) {
		t.Errorf("%d of %d packages", len(read), len(some))
	}
}

func TestWriteSHA512(t *testing.T) {
	m := memory{}
	primary := primaryOf("a 1-1")
	from, to := strings.Index(primary, `<checksum`), strings.Index(primary, `</checksum>`)
	sum := fmt.Sprintf("%x", sha512.Sum512(nil))
	primary = primary[:from] + `<checksum type="sha512" pkgid="YES">` + sum + primary[to:]
	r := m.repository(t, "https://a.test", "gz", map[string]string{"primary": primary})
	all := entriesOf(t, m, r)
	files, err := Write(all, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		m["https://b.test/"+f.Name] = f.Content
	}
	if again := entriesOf(t, m, Repository{Bases: []string{"https://b.test"}}); again[0].SHA512 != sum || again[0].SHA256 != "" {
		t.Errorf("%+v", again[0])
	}
}

func TestWriteRefuses(t *testing.T) {
	a := &packaging.Package{Name: "a", Version: "1-1", Arch: "noarch", Location: "x/a.rpm", Record: []byte(`<package><location href="x/a.rpm"/></package>`)}
	b := *a
	b.Name, b.Location = "b", "y/a.rpm"
	for _, c := range []struct {
		packages []*packaging.Package
		want     string
	}{
		{[]*packaging.Package{a, &b}, "a 1-1 (noarch) and b 1-1 (noarch) have the same file name, a.rpm"},
		{[]*packaging.Package{{Name: "c", Location: "c.rpm"}}, "no record"},
		{[]*packaging.Package{{Name: "c", Location: "c.rpm", Record: []byte("<package></package>")}}, "no location"},
		{[]*packaging.Package{{Name: "c", Location: "c.rpm", Record: []byte("<package><format>")}}, "unexpected"},
	} {
		if _, err := Write(c.packages, now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, not %s", err, c.want)
		}
	}
}

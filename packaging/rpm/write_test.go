package rpm

import (
	"crypto/sha512"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
)

// membersOf gives packages that Read gave as a repository of their own has them.
func membersOf(t *testing.T, packages []*packaging.Package) []manifest.Member {
	t.Helper()
	out, err := (&Metadata{}).Members(packages)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

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
	files, err := Write(membersOf(t, some), now)
	if err != nil {
		t.Fatal(err)
	}
	backwards := append([]*packaging.Package(nil), some...)
	for i, j := 0, len(some)-1; i < j; i, j = i+1, j-1 {
		backwards[i], backwards[j] = backwards[j], backwards[i]
	}
	again, err := Write(membersOf(t, backwards), now)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(files, again); d != "" {
		t.Error("equal packages gave other bytes")
	}
	var b strings.Builder
	m := memory{}
	for _, f := range files {
		m["https://b.test/"+f.Path] = f.Content
		fmt.Fprintf(&b, "==== %s\n%s", f.Path, f.Content)
	}
	golden(t, "testdata/write.golden", b.String())

	read := entriesOf(t, m, Repository{ID: "test", Bases: []string{"https://b.test"}}, "/usr/bin/ls", "bash-completion")
	byName := map[string]*packaging.Package{}
	for _, p := range some {
		q := *p
		q.Location, q.Record = "Packages/"+nevra(p)+".rpm", nil
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
	files, err := Write(membersOf(t, all), now)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		m["https://b.test/"+f.Path] = f.Content
	}
	if again := entriesOf(t, m, Repository{Bases: []string{"https://b.test"}}); again[0].SHA512 != sum || again[0].SHA256 != "" {
		t.Errorf("%+v", again[0])
	}
}

// TestWriteRefuses: a lock may be anybody's, and its records say anything.
func TestWriteRefuses(t *testing.T) {
	all := membersOf(t, entriesOf(t, fixture(t), signedRepository))
	a, b := all[0], all[1]
	other := func(change func(*manifest.Member)) []manifest.Member {
		x := a
		change(&x)
		return []manifest.Member{x}
	}
	for name, c := range map[string]struct {
		members []manifest.Member
		want    string
	}{
		"twice":               {[]manifest.Member{a, a}, "is listed twice"},
		"no record":           {other(func(m *manifest.Member) { m.Record = "" }), "it has no record"},
		"another's":           {other(func(m *manifest.Member) { m.Record = b.Record }), "its record is for " + b.Package},
		"elsewhere":           {other(func(m *manifest.Member) { m.Path = "Packages/x.rpm" }), "for another file"},
		"another size":        {other(func(m *manifest.Member) { m.Size++ }), "for another file"},
		"another digest":      {other(func(m *manifest.Member) { m.SHA256 = strings.Repeat("0", 64) }), "for another file"},
		"two elements":        {other(func(m *manifest.Member) { m.Record += b.Record }), "more than one element"},
		"an end too many":     {other(func(m *manifest.Member) { m.Record += "</metadata><metadata>" }), "more than one element"},
		"not to its end":      {other(func(m *manifest.Member) { m.Record = m.Record[:len(m.Record)-20] }), "EOF"},
		"a document of types": {other(func(m *manifest.Member) { m.Record = "<!DOCTYPE x>" + m.Record }), "document type"},
	} {
		if _, err := Write(c.members, now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, not %s", name, err, c.want)
		}
	}
}

func TestMembersRefuses(t *testing.T) {
	for _, c := range []struct {
		p    packaging.Package
		want string
	}{
		{packaging.Package{}, "no record"},
		{packaging.Package{Record: []byte("<package></package>")}, "no location"},
		{packaging.Package{Record: []byte(`<package><location href="x"/></package>`)}, "no format"},
		{packaging.Package{Record: []byte("<package><format>")}, "unexpected"},
		{packaging.Package{Version: "1/2-1", Record: []byte("<package></package>")}, "not a valid file name"},
	} {
		p := c.p
		p.Name, p.Arch = "a", "noarch"
		if p.Version == "" {
			p.Version = "1-1"
		}
		if _, err := (&Metadata{}).Members([]*packaging.Package{&p}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, not %s", err, c.want)
		}
	}
}

// TestMembersKeepFiles: paths that others ask for, and only filelists had, are in the
// record, wherever its format ends.
func TestMembersKeepFiles(t *testing.T) {
	p := packaging.Package{Name: "a", Version: "1-1", Arch: "noarch", Provides: []packaging.Relation{{Name: "/a&b"}, {Name: "/known"}, {Name: "/provided"}}}
	for format, want := range map[string]string{
		"<format/>": "<format>\n<file>/a&amp;b</file>\n<file>/known</file>\n<file>/provided</file>\n</format>",
		`<format><rpm:provides><rpm:entry name="/provided"/></rpm:provides><file>/known</file></format>`: `<format><rpm:provides><rpm:entry name="/provided"/></rpm:provides>` +
			"<file>/known</file><file>/a&amp;b</file>\n</format>",
	} {
		for _, around := range [][2]string{{"<location href='x'></location>", ""}, {"", "<!-- < --><location xml:base='' href='x'/> "}} {
			p.Record = []byte("<package>" + around[0] + format + around[1] + "</package>")
			record, err := relocated(&p, "Packages/a.rpm")
			if err != nil {
				t.Fatal(err)
			}
			location := `<location href="Packages/a.rpm"/>`
			whole := "<package>" + location + want + "</package>"
			if around[1] != "" {
				whole = "<package>" + want + "<!-- < -->" + location + " </package>"
			}
			if record != whole {
				t.Errorf("%s\nand not\n%s", record, whole)
			}
		}
	}
}

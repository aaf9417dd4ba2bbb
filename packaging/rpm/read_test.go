package rpm

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/packaging"
)

var signedRepository = Repository{ID: "test", Bases: []string{"https://a.test/repo"}, Keys: []string{"file:///keys/right.asc"}, SignedMetadata: true, Priority: 99}

// TestRead compares all that is read of testdata/repo, which createrepo_c made.
func TestRead(t *testing.T) {
	m, err := Read(t.Context(), fixture(t), []Repository{signedRepository}, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Notes) > 0 {
		t.Error(m.Notes)
	}
	var b strings.Builder
	m.each(func(e *entry) {
		fmt.Fprintf(&b, "%s\n  requires %v\n  provides %v\n  conflicts %v\n  obsoletes %v\n  %s: %s, %v\n", &e.Package, lines(e.Requires), e.Provides, e.Conflicts, e.Obsoletes,
			e.Repository, e.Location, len(e.SHA256) == 64 && e.Size > 0)
	})
	golden(t, "testdata/read.golden", b.String())
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error(d)
	}
}

// TestClosure solves over testdata/repo what TestInstall has dnf install.
func TestClosure(t *testing.T) {
	m, err := Read(t.Context(), fixture(t), []Repository{signedRepository}, options)
	if err != nil {
		t.Fatal(err)
	}
	u, notes, err := m.Universe()
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	base, err := u.BaseClosure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := u.Solve(t.Context(), packaging.Request{Want: m.Want(fixtureWants...), Installed: base})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"bash-completion-2.11-1~rc2.noarch", "chrony-4.5-1~rc2.noarch", "ebtables-2.0.11-1~rc2.noarch", "ipset-7.19-1~rc2.noarch", "ipset-lang-7.19-1~rc2.noarch",
		"openssl-libs-1:3.0.8-1^git1.noarch", "rich-and-1-1~rc2.noarch", "rich-else-1-1~rc2.noarch", "rich-nested-1-1~rc2.noarch", "rich-or-1-1~rc2.noarch",
		"rich-with-1-1~rc2.noarch", "rich-without-1-1~rc2.noarch", "socat-1.8.0.0-1~rc2.noarch"}
	if d := cmp.Diff(want, nevras(s.Add)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"bash-5.2.21-1.noarch"}, nevras(s.Held)); d != "" {
		t.Error(d)
	}
	_, err = u.Solve(t.Context(), packaging.Request{Want: m.Want("broken-missing"), Installed: base})
	var e *packaging.Unsolvable
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"requested: broken-missing", "broken-missing 1-1~rc2 (noarch) requires broken-deeper, which only broken-deeper 1-1~rc2 (noarch) provides",
		"broken-deeper 1-1~rc2 (noarch) requires chrony (>= 5), which no package provides (available: chrony 4.5-1~rc2 (noarch), chrony 4.3-2 (noarch))"}, e.Chain); d != "" {
		t.Error(d)
	}
}

// TestReadRefuses changes one thing of testdata/repo at a time.
func TestReadRefuses(t *testing.T) {
	const repomd = "https://a.test/repo/repodata/repomd.xml"
	flip := func(part string) func(t *testing.T, m memory, r *Repository) {
		return func(t *testing.T, m memory, r *Repository) {
			name := m.name(t, part)
			m[name] = bytes.Clone(m[name])
			m[name][len(m[name])/2] ^= 1
		}
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, m memory, r *Repository)
		want   string
	}{
		{"a changed repomd.xml", flip("repomd.xml"), "repodata/repomd.xml: signature: "},
		{"no signature", func(t *testing.T, m memory, r *Repository) { delete(m, repomd+".asc") }, "signature of repodata/repomd.xml: "},
		{"no signature and a mirror that fails", func(t *testing.T, m memory, r *Repository) {
			delete(m, repomd+".asc")
			r.Bases = append(r.Bases, "https://b.test/repo")
		}, "signature of repodata/repomd.xml: "},
		{"another's signature", func(t *testing.T, m memory, r *Repository) { r.Keys = []string{"file:///keys/other.asc"} }, "signature made by unknown entity"},
		{"no key at its address", func(t *testing.T, m memory, r *Repository) { r.Keys = []string{"file:///keys/none.asc"} }, "key file:///keys/none.asc of repository test: 404"},
		{"no key in a file", func(t *testing.T, m memory, r *Repository) { m["file:///keys/right.asc"] = []byte("hello") }, "key file:///keys/right.asc of repository test: "},
		{"a key that expired", func(t *testing.T, m memory, r *Repository) { sign(t, m, repomd, time.Hour) }, "expired"},
		{"a changed primary", flip("primary"), "its checksum is "},
		{"a cut primary", func(t *testing.T, m memory, r *Repository) {
			name := m.name(t, "primary")
			m[name] = m[name][:len(m[name])-10]
		}, "bytes, expected"},
		{"a longer primary", func(t *testing.T, m memory, r *Repository) {
			name := m.name(t, "primary")
			m[name] = append(bytes.Clone(m[name]), 0)
		}, "it is longer than"},
		{"no primary", func(t *testing.T, m memory, r *Repository) { delete(m, m.name(t, "primary")) }, "404"},
		{"changed filelists", flip("filelists"), "its checksum is "},
		{"nothing there", func(t *testing.T, m memory, r *Repository) { r.Bases = []string{"https://b.test/"} }, "https://b.test/repodata/repomd.xml: 404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, r := fixture(t), signedRepository
			c.change(t, m, &r)
			_, err := Read(t.Context(), m, []Repository{r}, options)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %s", err, c.want)
			}
		})
	}
}

// sign signs repomd.xml with a key made for it that lives for a time from 2029 on.
func sign(t *testing.T, m memory, name string, life time.Duration) {
	t.Helper()
	config := &packet.Config{Time: func() time.Time { return now.AddDate(-1, 0, 0) }, KeyLifetimeSecs: uint32(life.Seconds()), Algorithm: packet.PubKeyAlgoEdDSA}
	key, err := openpgp.NewEntity("a", "", "a@example.org", config)
	if err != nil {
		t.Fatal(err)
	}
	var public, signature bytes.Buffer
	w, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(key.Serialize(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := openpgp.DetachSign(&signature, key, bytes.NewReader(m[name]), config); err != nil {
		t.Fatal(err)
	}
	m["file:///keys/right.asc"], m[name+".asc"] = public.Bytes(), signature.Bytes()
}

func TestReadTakesAKeyThatLives(t *testing.T) {
	m := fixture(t)
	sign(t, m, "https://a.test/repo/repodata/repomd.xml", 3*365*24*time.Hour)
	if _, err := Read(t.Context(), m, []Repository{signedRepository}, options); err != nil {
		t.Error(err)
	}
}

// TestReadFromAnotherMirror has the first mirror fail in several ways.
func TestReadFromAnotherMirror(t *testing.T) {
	for name, spoil := range map[string]func(m memory){
		"nothing there": func(m memory) { clear(m) },
		"an old primary": func(m memory) {
			m["https://b.test/repo/"+strings.TrimPrefix(m.name(t, "primary"), "https://b.test/repo/")] = []byte("old")
		},
		"an old repomd": func(m memory) { m["https://b.test/repo/repodata/repomd.xml"] = []byte("<repomd/>") },
	} {
		t.Run(name, func(t *testing.T) {
			m, bad := fixture(t), memory{}
			bad.put(t, "https://b.test/repo", "testdata/repo")
			spoil(bad)
			for k, v := range bad {
				m[k] = v
			}
			r := signedRepository
			r.Bases = []string{"https://b.test/repo/", "https://a.test/repo/"}
			if _, err := Read(t.Context(), m, []Repository{r}, options); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadSaysWhatIsNotSigned(t *testing.T) {
	m := fixture(t)
	delete(m, "https://a.test/repo/repodata/repomd.xml.asc")
	r := signedRepository
	r.SignedMetadata = false
	for signed, want := range map[bool][]string{
		true:  nil, // each package's own signature is looked at
		false: {"repository test: neither its metadata nor its packages must be signed: only the connection to it is trusted"},
	} {
		r.SignedPackages = signed
		got, err := Read(t.Context(), m, []Repository{r}, options)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got.Notes); d != "" {
			t.Error(d)
		}
	}
}

var (
	fewPackages = primaryOf("a 1-1", "b 2-1 aarch64", "c 3-1 noarch", "d 4-1 src")
	manyBlanks  = strings.Repeat(" ", 32<<20)
)

func TestReadCompressions(t *testing.T) {
	for _, kind := range []string{"gz", "zst", "xz", "none"} {
		t.Run(kind, func(t *testing.T) {
			m := memory{}
			r := m.repository(t, "https://a.test", kind, map[string]string{"primary": fewPackages})
			got, err := Read(t.Context(), m, []Repository{r}, options)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			got.each(func(e *entry) { names = append(names, e.String()) })
			if d := cmp.Diff([]string{"a 1-1 (x86_64)", "c 3-1 (noarch)"}, names); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestReadHostilePrimary has metadata whose checksums are right say what it should not.
func TestReadHostilePrimary(t *testing.T) {
	one := primaryOf("a 1-1")
	for _, c := range []struct{ name, primary, want string }{
		{"an entity", `<!DOCTYPE m [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;">]>` + one, "declares a document type"},
		{"an entity inside", strings.Replace(one, "<name>a", `<!DOCTYPE m []><name>a`, 1), "declares a document type"},
		{"an unknown entity", strings.Replace(one, "<name>a", "<name>&b;", 1), "invalid character entity"},
		{"another root", "<html></html>", "its root is html"},
		{"another namespace", strings.Replace(one, `xmlns:rpm="`, `xmlns:x="urn:x" xmlns:rpm="`, 1), "declares xmlns:x"},
		{"more after its end", one + "<more/>", "continues after its root element"},
		{"cut", one[:len(one)-20], "unexpected"},
		{"no checksum", strings.Replace(one, "checksum", "cheksum", 2), "no checksum"},
		{"md5", strings.Replace(one, `type="sha256"`, `type="md5"`, 1), `checksum type is "md5"`},
		{"a short checksum", strings.Replace(one, `"YES">`, `"YES">ab`, 1), "is not valid"},
		{"a location above", strings.Replace(one, "Packages/", "../../etc/", 1), "is not inside the repository"},
		{"a location above inside", strings.Replace(one, "Packages/", "a/../../etc/", 1), "is not inside the repository"},
		{"a location elsewhere", strings.Replace(one, "Packages/", "https://b.test/", 1), "is not inside the repository"},
		{"an absolute location", strings.Replace(one, "Packages/", "/etc/", 1), "is not inside the repository"},
		{"a name for a shell", strings.Replace(one, "<name>a", "<name>a;$(reboot)", 1), "is not valid"},
		{"a name for a flag", strings.Replace(one, "<name>a", "<name>--setopt=x", 1), "is not valid"},
		{"a name for a path", strings.Replace(one, "<name>a", "<name>../a", 1), "is not valid"},
		{"a size below zero", strings.Replace(one, `package="10"`, `package="-1"`, 1), `size "-1"`},
		{"depth", strings.Replace(one, "<format>", "<format>"+strings.Repeat("<a>", 100000), 1), "element <a> closed by"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memory{}
			r := m.repository(t, "https://a.test", "gz", map[string]string{"primary": c.primary})
			_, err := Read(t.Context(), m, []Repository{r}, options)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %s", err, c.want)
			}
		})
	}
}

// TestReadIsBounded gives a little that becomes much.
func TestReadIsBounded(t *testing.T) {
	for _, kind := range []string{"gz", "zst", "xz"} {
		bomb := packed(t, kind, []byte("<"+manyBlanks))
		f := file{Sum: sum{"sha256", fmt.Sprintf("%x", sha256.Sum256(bomb))}, Size: int64(len(bomb)), OpenSize: -1}
		err := f.read(bytes.NewReader(append([]byte(nil), bomb...)), 1<<20, all(new([]byte), 1<<30))
		if err == nil || !strings.Contains(err.Error(), "longer than 1048576 bytes") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestReadPassesOver(t *testing.T) {
	m := memory{}
	r := m.repository(t, "https://a.test", "gz", map[string]string{"primary": primaryOf(
		`a 1-1; <rpm:requires><rpm:entry name="(b xor c)"/></rpm:requires>`, "b 1-1", "kernel-a 1-1", "kernel-b 1-1")})
	r.Exclude, r.Include = []string{"kernel-*.x86_64"}, nil
	got, err := Read(t.Context(), m, []Repository{r}, options)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	got.each(func(e *entry) { names = append(names, e.Name) })
	if d := cmp.Diff([]string{"b"}, names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"repository a.test: neither its metadata nor its packages must be signed: only the connection to it is trusted", `repository a.test: a 1-1 (x86_64) is skipped: rich dependency "(b xor c)": unknown operator "xor"`}, got.Notes); d != "" {
		t.Error(d)
	}
}

// TestReadAsksForFilelistsOnlyWhereNeeded breaks them, and asks for what needs them and
// for what does not.
func TestReadAsksForFilelistsOnlyWhereNeeded(t *testing.T) {
	for name, needed := range map[string]bool{"socat": false, "bash-completion": true, "/usr/bin/ls": false, "/usr/lib64/libc.so.6": true, "rich-nested": false, "": true} {
		m, o := fixture(t), options
		m[m.name(t, "filelists")] = nil
		if name != "" {
			o.Names = []string{name}
		}
		_, err := Read(t.Context(), m, []Repository{signedRepository}, o)
		if needed != (err != nil) {
			t.Errorf("%s: needed %v, %v", name, needed, err)
		}
	}
}

// TestReadPathsInATurn has who has a path ask for another.
func TestReadPathsInATurn(t *testing.T) {
	m := memory{}
	path := func(p string) string { return `<rpm:requires><rpm:entry name="` + p + `"/></rpm:requires>` }
	r := m.repository(t, "https://a.test", "gz", map[string]string{
		"primary": primaryOf("a 1-1; "+path("/b"), "b 1-1; "+path("/c"), "c 1-1"),
		"filelists": fmt.Sprintf(`<filelists xmlns="%s"><package pkgid="%x"><file>/b</file></package><package pkgid="%x"><file>/c</file></package></filelists>`,
			filelistsSpace, sha256.Sum256([]byte("b 1-1")), sha256.Sum256([]byte("c 1-1")))})
	o := options
	o.Names = []string{"a"}
	read, err := Read(t.Context(), m, []Repository{r}, o)
	if err != nil {
		t.Fatal(err)
	}
	u, _, err := read.Universe()
	if err != nil {
		t.Fatal(err)
	}
	s, err := u.Solve(t.Context(), packaging.Request{Want: read.Want("a")})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"a-1-1.x86_64", "b-1-1.x86_64", "c-1-1.x86_64"}, nevras(s.Add)); d != "" {
		t.Error(d)
	}
}

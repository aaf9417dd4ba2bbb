package apt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
)

func TestParseList(t *testing.T) {
	const text = `# a comment
deb http://deb.example.com/debian/ bookworm main contrib # behind
deb-src http://deb.example.com/debian bookworm main
deb	[ arch=amd64,arm64  signed-by=/usr/share/keyrings/x.gpg,/y.asc by-hash=no check-valid-until=no ] https://x.example.com/deb bookworm stable
deb [signed-by=0123456789abcdef0123456789abcdef01234567!] http://flat.example.com ./
deb [arch-=i386] copy:/srv/debian bookworm main
`
	want := []Source{
		{URI: "http://deb.example.com/debian", Suite: "bookworm", Components: []string{"main", "contrib"}, File: "x.list", Line: 2},
		{URI: "https://x.example.com/deb", Suite: "bookworm", Components: []string{"stable"}, Architectures: []string{"amd64", "arm64"},
			SignedBy: Keys{Files: []string{"/usr/share/keyrings/x.gpg", "/y.asc"}}, NoHash: true, AnyAge: true, File: "x.list", Line: 4},
		{URI: "http://flat.example.com", Suite: "./", Components: []string{}, SignedBy: Keys{Fingerprints: []string{"0123456789ABCDEF0123456789ABCDEF01234567"}},
			File: "x.list", Line: 5},
		{URI: "file:/srv/debian", Suite: "bookworm", Components: []string{"main"}, Without: []string{"i386"}, File: "x.list", Line: 6},
	}
	have, problems := ParseList("x.list", text, "")
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
	if len(problems) > 0 {
		t.Error(problems)
	}
}

func TestParseSources(t *testing.T) {
	const text = `# written by hand
Types: deb deb-src
URIs: http://a.example.com/debian
# not this one: http://c.example.com/debian
 http://b.example.com/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://off.example.com
Suites: x
Components: main
Enabled: no

types: deb
uris: https://c.example.com
suites: /
architectures: amd64
signed-by:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEXAMPLE
 =abcd
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb-src
URIs: http://a.example.com/debian
Suites: bookworm
Components: main
`
	keys := Keys{Files: []string{"/usr/share/keyrings/debian-archive-keyring.gpg"}}
	one := func(uri, suite string) Source {
		return Source{URI: uri, Suite: suite, Components: []string{"main"}, SignedBy: keys, File: "x.sources", Line: 1}
	}
	want := []Source{
		one("http://a.example.com/debian", "bookworm"), one("http://a.example.com/debian", "bookworm-updates"),
		one("http://b.example.com/debian", "bookworm"), one("http://b.example.com/debian", "bookworm-updates"),
		{URI: "https://c.example.com", Suite: "/", Architectures: []string{"amd64"}, File: "x.sources", Line: 16,
			SignedBy: Keys{Inline: "\n-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEXAMPLE\n=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n"}},
	}
	have, problems := ParseSources("x.sources", text, "")
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
	if len(problems) > 0 {
		t.Error(problems)
	}
}

// TestSourceProblems: everything that is wrong is told at once, each with its line.
func TestSourceProblems(t *testing.T) {
	_, list := ParseList("a.list", `deb http://x.example.com
debian http://x.example.com bookworm main
deb [arch=amd64 http://x.example.com bookworm main
deb [trusted=yes] http://x.example.com bookworm main
deb cdrom:[Debian]/ bookworm main
deb http://x.example.com bookworm
deb http://x.example.com ./ main
deb [signed-by=relative.gpg foo=bar arch] http://x.example.com bookworm main
deb http://x.example.com ../up main
deb [trusted=no allow-weak=yes check-date=no] http://x.example.com bookworm main
deb mirror+file:/nowhere/debian.list bookworm main
`, "")
	_, sources := ParseSources("b.sources", "Types: deb\nURIs: http://x.example.com\n\nTypes: deb\n continued\nwrong\n\nTypes: deb\nURIs: http://x.example.com\nSuites: x\nComponents: main\nTrusted: yes\nNonsense: 1\n", "")
	want := []string{
		"a.list:1:0: error: a source requires a URI and a suite; write it as deb URI SUITE COMPONENT…",
		`a.list:2:0: error: "debian" is not a source type; write deb`,
		"a.list:3:0: error: the options have no closing bracket",
		"a.list:4:0: warning: trusted=yes is ignored: the repository must be signed; specify its key with signed-by",
		`a.list:5:0: warning: "cdrom:[Debian]/" is skipped: only http, https and file URIs are supported; specify a mirror's URI instead`,
		`a.list:6:0: error: the suite "bookworm" requires components, such as main; add them, or end the suite in a slash if the repository is flat`,
		`a.list:7:0: error: the suite "./" ends in a slash, so the repository cannot have components; remove the components or the slash`,
		`a.list:8:0: error: signed-by has "relative.gpg", which is neither a path nor a full fingerprint`,
		"a.list:8:0: warning: the option foo is unknown",
		"a.list:8:0: error: the option arch has no value; write it as name=value",
		`a.list:9:0: error: "../up" is not a valid suite`,
		"a.list:10:0: warning: allow-weak=yes is ignored: the repository must be signed; specify its key with signed-by",
		"a.list:10:0: warning: check-date=no is ignored; set this machine's clock if it is wrong",
		"a.list:11:0: warning: mirror list: stat /nowhere/debian.list: no such file or directory",
		`a.list:11:0: warning: "mirror+file:/nowhere/debian.list" is skipped: only http, https and file URIs are supported; specify a mirror's URI instead`,
		"b.sources:1:0: error: the entry has no Suites",
		`b.sources:4:0: error: this entry cannot be read: line 3 is not a field: "wrong\n"`,
		"b.sources:12:0: warning: trusted=yes is ignored: the repository must be signed; specify its key with signed-by",
		"b.sources:13:0: warning: the option nonsense is unknown",
	}
	var have []string
	for _, p := range append(list, sources...) {
		have = append(have, p.String())
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
}

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sources.list":                   "deb http://a.example.com x main\n",
		"sources.list.d/b.list":          "deb http://b.example.com x main\ndeb http://a.example.com x main contrib\n",
		"sources.list.d/a.sources":       "Types: deb\nURIs: http://c.example.com\nSuites: x\nComponents: main\n",
		"sources.list.d/c.list.disabled": "deb http://off.example.com x main\n",
		"sources.list.d/d.list":          "deb [signed-by=/k.gpg] http://a.example.com x main\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, problems := ReadFolder(dir)
	var lines []string
	for _, s := range have {
		lines = append(lines, s.String()+" "+strings.Join(s.Components, " "))
	}
	if d := cmp.Diff([]string{"http://a.example.com x main contrib", "http://c.example.com x main", "http://b.example.com x main"}, lines); d != "" {
		t.Error(d)
	}
	var said []string
	for _, p := range problems {
		said = append(said, strings.ReplaceAll(p.String(), dir+"/", ""))
	}
	want := []string{
		"sources.list.d/b.list:2:0: warning: http://a.example.com x main is already configured, at sources.list:1",
		"sources.list.d/d.list:1:0: error: http://a.example.com x is also configured with other keys, at sources.list:1; set the same keys in both",
	}
	if d := cmp.Diff(want, said); d != "" {
		t.Error(d)
	}
	if have, problems := ReadFolder(filepath.Join(dir, "nowhere")); have != nil || problems != nil {
		t.Error(have, problems)
	}
}

func TestMirrorList(t *testing.T) {
	list := write(t, "debian.list", "# mirrors\nhttps://a.example.com/debian/\tpriority:1\nhttps://b.example.com/debian\n")
	found, problems := ParseSources("x.sources", "Types: deb deb-src\nURIs: mirror+file://"+list+"\nSuites: bookworm\nComponents: main\n", "")
	if len(problems) > 0 || len(found) != 1 || found[0].URI != "https://a.example.com/debian" {
		t.Error(found, problems)
	}
}

func TestSourceAddresses(t *testing.T) {
	pooled := Source{URI: "http://x.example.com/debian", Suite: "bookworm"}
	flat := Source{URI: "http://x.example.com", Suite: "sub/"}
	root := Source{URI: "http://user:secret@x.example.com/", Suite: "./"}
	for _, x := range [][2]string{
		{pooled.index("InRelease"), "http://x.example.com/debian/dists/bookworm/InRelease"},
		{pooled.Package("pool/main/a.deb"), "http://x.example.com/debian/pool/main/a.deb"},
		{flat.index("InRelease"), "http://x.example.com/sub/InRelease"},
		{flat.Package("./a.deb"), "http://x.example.com/a.deb"}, // as apt has it
		{root.index("Packages.gz"), "http://user:secret@x.example.com/Packages.gz"},
		{root.String(), "http://user:xxxxx@x.example.com/ ./"},
	} {
		if x[0] != x[1] {
			t.Errorf("%s, want %s", x[0], x[1])
		}
	}
}

func FuzzSources(f *testing.F) {
	f.Add("deb [arch=amd64 signed-by=/x.gpg] http://x.example.com bookworm main")
	f.Add("Types: deb\nURIs: http://x.example.com\nSuites: x\nComponents: main\nSigned-By:\n .\n x\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string, string, string) ([]Source, manifest.Problems){ParseList, ParseSources} {
			found, problems := parse("x", text, "/base")
			for _, s := range found {
				if s.URI == "" || s.Suite == "" || s.Line == 0 || s.flat() != (len(s.Components) == 0) {
					t.Errorf("%+v", s)
				}
			}
			for _, p := range problems {
				if p.Message == "" || p.File != "x" {
					t.Errorf("%+v", p)
				}
			}
		}
	})
}

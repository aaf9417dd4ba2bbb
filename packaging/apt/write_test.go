package apt

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
)

var about = About{Origin: "kubexm", Codename: "bookworm", Arch: "amd64", Date: then}

// closure of some names in the cut, the base left out, with records.
func closure(t *testing.T, a *Archive, names ...string) []*packaging.Package {
	t.Helper()
	base, err := a.Universe.BaseClosure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Universe.Solve(t.Context(), packaging.Request{Want: want(names...), Installed: base})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Fill(s.Add); err != nil {
		t.Fatal(err)
	}
	return s.Add
}

// TestWriteRead: what is written is read back as it was, but for where it lies.
func TestWriteRead(t *testing.T) {
	s := newSite(t)
	a := cut(t)
	wanted := closure(t, a, "socat", "chrony", "ebtables", "python3-minimal")
	members, err := a.Members(wanted)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Write(members, about)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		s.files["repo/"+f.Path] = f.Content
	}
	s.sign("repo", string(s.files["repo/Release"]))
	again, err := Open(t.Context(), s, s.request(Source{URI: s.url + "/repo", Suite: "./", SignedBy: Keys{Inline: public(t, s.keys...)}}))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range wanted {
		have := again.Universe.Find(packaging.Relation{Name: p.Name})[0]
		if d := cmp.Diff(p, have, cmpopts.IgnoreFields(packaging.Package{}, "Repository", "Location", "Record")); d != "" {
			t.Error(d)
		}
		if have.Location != members[i].Path || again.Address(have) != s.url+"/repo/"+members[i].Path {
			t.Errorf("%s lies at %s", have, have.Location)
		}
		if members[i].Address != a.Address(p) || path.Ext(members[i].Address) != ".deb" {
			t.Errorf("%s is at %s", p, members[i].Address)
		}
	}
	slices.Reverse(members)
	backwards, err := Write(members, about)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(files, backwards); d != "" {
		t.Error("the order of the packages makes another repository")
	}
}

func TestWriteText(t *testing.T) {
	s := newSite(t)
	s.publish("debian/dists/bookworm", bookworm, map[string]string{"main/binary-amd64/Packages": stanzaOf("b", "1:2", "Description: a\xfftext", " more", " .", " Filename: not this", "Tag: x", "Homepage: y", "Phased-Update-Percentage: 10", "Installed-Size: 7") + "\n" +
		stanzaOf("a", "1", "Depends:", " b,", " c")})
	a, err := Open(t.Context(), s, s.request(s.source()))
	if err != nil {
		t.Fatal(err)
	}
	both, err := a.Members(append(a.Universe.Find(packaging.Relation{Name: "b"}), a.Universe.Find(packaging.Relation{Name: "a"})...))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Write(both, about)
	if err != nil {
		t.Fatal(err)
	}
	index := "Package: a\nVersion: 1\nArchitecture: amd64\nDepends:\n b,\n c\nFilename: pool/a_1_amd64.deb\nSize: 100\nSHA256: " + both[1].SHA256 + "\n\n" +
		"Package: b\nVersion: 1:2\nArchitecture: amd64\nDescription: a?text\nInstalled-Size: 7\nFilename: pool/b_2_amd64.deb\nSize: 100\nSHA256: " + both[0].SHA256 + "\n"
	release := "Origin: kubexm\nCodename: bookworm\nDate: Wed, 20 May 2026 12:00:00 UTC\nArchitectures: amd64 all\nSHA256:\n" +
		fmt.Sprintf(" %x %d Packages\n", sha256.Sum256([]byte(index)), len(index))
	if d := cmp.Diff([]packaging.File{{Path: "Packages", Content: []byte(index)}, {Path: "Release", Content: []byte(release)}}, files); d != "" {
		t.Error(d)
	}
}

// TestWriteRefused: a lock may be anybody's, and its records say anything.
func TestWriteRefused(t *testing.T) {
	m := manifest.Member{Path: "pool/a_1_amd64.deb", Name: "pool/a_1_amd64.deb", Size: 100, SHA256: someSum, Package: "a 1 (amd64)",
		Record: "Package: a\nVersion: 1\nArchitecture: amd64\n"}
	other := func(change func(*manifest.Member)) []manifest.Member {
		x := m
		change(&x)
		return []manifest.Member{x}
	}
	tests := []struct {
		name    string
		members []manifest.Member
		about   About
		want    string
	}{
		{"no date", nil, About{}, "requires a date"},
		{"no record", other(func(m *manifest.Member) { m.Record = "" }), about, "a 1 (amd64): its record is for   ()"},
		{"twice", []manifest.Member{m, m}, about, "a 1 (amd64) is listed twice"},
		{"of another package", other(func(m *manifest.Member) { m.Package = "a 2 (amd64)" }), about, "a 2 (amd64): its record is for a 1 (amd64)"},
		{"a field twice", other(func(m *manifest.Member) { m.Record += "version: 2\n" }), about, "more than one version"},
		{"other bytes", other(func(m *manifest.Member) { m.Record += "SHA256: " + someSum + "\n" }), about, "more than one SHA256"},
		{"another file", other(func(m *manifest.Member) { m.Record += "filename: pool/b.deb\n" }), about, "more than one filename"},
		{"two paragraphs", other(func(m *manifest.Member) { m.Record += "\nPackage: b\n" }), about, "line 4 is not a field"},
		{"two paragraphs, with a blank between", other(func(m *manifest.Member) { m.Record += "Section: x\n \n y\n" }), about, "spans more than one field"},
		{"a line that ends otherwise", other(func(m *manifest.Member) { m.Record += "Section: x\r\rPackage: b\n" }), about, "spans more than one field"},
	}
	for _, x := range tests {
		if _, err := Write(x.members, x.about); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.name, err, x.want)
		}
	}
}

func TestMembersRefused(t *testing.T) {
	for _, p := range []packaging.Package{{Name: "a", Version: "1/../2", Arch: "amd64"}, {Name: "a", Version: "1 2", Arch: "amd64"}, {Name: "a", Version: "1%2", Arch: "all"}} {
		if _, err := member(&p); err == nil || !strings.Contains(err.Error(), "is not a valid file name") {
			t.Errorf("%s: %v", &p, err)
		}
	}
}

// TestAptGetUsesIt has apt-get itself take packages out of a written repository:
// in a root of its own, with the signature checked.
func TestAptGetUsesIt(t *testing.T) {
	for _, tool := range []string{"apt-get", "dpkg-deb", "gpgv"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s here", tool)
		}
	}
	arch := "all"
	dir := t.TempDir()
	packages := []*packaging.Package{
		buildDeb(t, dir, "kubexm-test-a", "1:2.0-1", arch, "Depends: kubexm-test-b (>= 1~) | nothing"),
		buildDeb(t, dir, "kubexm-test-b", "1~rc1+b1", arch, "Provides: kubexm-test-c", "Description: a text", " of some", " .", " lines"),
		buildDeb(t, dir, "kubexm-test-d", "1", arch, "Conflicts: kubexm-test-c"),
	}
	var members []manifest.Member
	for _, p := range packages {
		m, err := member(p)
		if err != nil {
			t.Fatal(err)
		}
		members = append(members, m)
	}
	files, err := Write(members, About{Origin: "kubexm", Arch: arch, Date: time.Now().Add(-time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	recent := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return time.Now().Add(-time.Minute) }}
	key, err := openpgp.NewEntity("site", "", "site@example.com", recent)
	if err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(dir, "repo")
	save := func(name string, b []byte) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(repo, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(repo, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		save(f.Path, f.Content)
		if f.Path == "Release" {
			save("InRelease", cleartext(t, string(f.Content), recent, key))
		}
	}
	for i, p := range packages {
		b, err := os.ReadFile(filepath.Join(dir, path.Base(p.Location)))
		if err != nil {
			t.Fatal(err)
		}
		save(members[i].Path, b)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(repo)))
	t.Cleanup(server.Close)
	r := cleanRoot(t, dir, "deb [signed-by="+write(t, "site.asc", public(t, key))+"] "+server.URL+" ./\n")
	r.run(t, "update")
	r.run(t, "install", "--yes", "--download-only", "kubexm-test-a")
	for _, name := range []string{"kubexm-test-a_1%3a2.0-1_all.deb", "kubexm-test-b_1~rc1+b1_all.deb"} {
		if _, err := os.Stat(filepath.Join(dir, "root/cache/archives", name)); err != nil {
			t.Error(err)
		}
	}
	simulated, why := r.install(t, []string{"kubexm-test-a"})
	if d := cmp.Diff([]string{"kubexm-test-a 1:2.0-1", "kubexm-test-b 1~rc1+b1"}, simulated); d != "" {
		t.Error(d, why)
	}
	if _, why := r.install(t, []string{"kubexm-test-a", "kubexm-test-d"}); !strings.Contains(why, "kubexm-test-d : Conflicts: kubexm-test-c") {
		t.Error(why)
	}
}

// TestOfflineIsWhole: where only the base and the written repository are there,
// apt-get installs what is wanted, and just what was found to be needed.
func TestOfflineIsWhole(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("there is no apt-get here")
	}
	a := cut(t)
	base, err := a.Universe.BaseClosure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"socat", "conntrack", "ebtables", "ipset", "ipvsadm", "chrony", "bash-completion", "python3-minimal"}
	all := closure(t, a, names...)
	members, err := a.Members(all)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Write(members, about)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Path), f.Content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := cleanRoot(t, dir, "deb [trusted=yes] file:"+dir+" ./\n")
	if err := os.WriteFile(filepath.Join(dir, "root/status"), installed(t, a, base), 0o600); err != nil {
		t.Fatal(err)
	}
	r.options = append(r.options, "-o", "APT::Architecture=amd64", "-o", "APT::Architectures::=amd64", "-o", "Acquire::Check-Date=false")
	r.run(t, "update")
	have, why := r.install(t, names)
	var want []string
	for _, p := range all {
		want = append(want, p.Name+" "+p.Version)
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d, why)
	}
}

// buildDeb makes a package of dir's and gives what a repository says of it.
func buildDeb(t *testing.T, dir, name, version, arch string, fields ...string) *packaging.Package {
	t.Helper()
	tree := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Join(tree, "DEBIAN"), 0o755); err != nil {
		t.Fatal(err)
	}
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: nobody <nobody@example.com>\n%s\n", name, version, arch, strings.Join(fields, "\n"))
	if !strings.Contains(control, "Description") {
		control += "Description: nothing\n"
	}
	if err := os.WriteFile(filepath.Join(tree, "DEBIAN/control"), []byte(control), 0o600); err != nil {
		t.Fatal(err)
	}
	deb := filepath.Join(dir, name+"_"+version[strings.Index(version, ":")+1:]+"_"+arch+".deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--root-owner-group", "--build", tree, deb).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(deb)
	if err != nil {
		t.Fatal(err)
	}
	p := &packaging.Package{Name: name, Version: version, Arch: arch, Location: "pool/main/" + filepath.Base(deb), Size: int64(len(b)), SHA256: fmt.Sprintf("%x", sha256.Sum256(b))}
	p.Record = []byte(control + fmt.Sprintf("Filename: %s\nSize: %d\nSHA256: %s\n", p.Location, p.Size, p.SHA256))
	return p
}

// cleanRoot is an empty installation with one source.
func cleanRoot(t *testing.T, dir, sources string) root {
	t.Helper()
	dir = filepath.Join(dir, "root")
	for _, d := range []string{"etc/apt.conf.d", "etc/preferences.d", "etc/sources.list.d", "state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"status": "", "etc/sources.list": sources} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := root{}
	for _, o := range []string{"Dir::Etc=" + dir + "/etc", "Dir::State=" + dir + "/state", "Dir::State::status=" + dir + "/status", "Dir::Cache=" + dir + "/cache",
		"Acquire::http::Proxy=DIRECT", "Debug::NoLocking=true", "APT::Sandbox::User=", "APT::Get::Show-User-Simulation-Note=false"} {
		r.options = append(r.options, "-o", o)
	}
	return r
}

// run wants apt-get to do something.
func (r root) run(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "apt-get", append(slices.Clone(r.options), args...)...).CombinedOutput(); err != nil {
		t.Fatalf("apt-get %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

package apt

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/packaging"
)

func TestPackings(t *testing.T) {
	for _, packing := range packings {
		t.Run("Packages"+packing, func(t *testing.T) {
			s := newSite(t)
			s.publish("debian/dists/bookworm", bookworm, map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "1")}, packing)
			a, err := Open(t.Context(), s, s.request(s.source()))
			if err != nil {
				t.Fatal(err)
			}
			if have := names(a, "a"); have != "a 1 (amd64)" {
				t.Error(have)
			}
		})
	}
}

// TestUnpackedTooLong: what unpacks to more than the release says ends there.
func TestUnpackedTooLong(t *testing.T) {
	for _, packing := range packings {
		in, err := unpack(packed(t, strings.Repeat("Package: a\n", 1<<16), packing), packing, 1<<10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, in); err == nil || !strings.Contains(err.Error(), "larger than in its release") {
			t.Errorf("%q: %v", packing, err)
		}
	}
}

// TestByHash: an index is asked for by its digest where the release says so, by
// its name where there is none, and packing for packing.
func TestByHash(t *testing.T) {
	s := newSite(t)
	const dir = "debian/dists/bookworm"
	s.publish(dir, bookworm, map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "1")}, ".gz", ".zst")
	release, err := parseRelease(s.text(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	const index = "main/binary-amd64/Packages"
	hash := dir + "/main/binary-amd64/by-hash/SHA256/" + release.files[index+".gz"].sha256
	s.files[hash] = s.files[dir+"/"+index+".gz"]
	s.files[dir+"/"+index+".gz"] = []byte("of the next update")
	delete(s.files, dir+"/"+index+".zst")
	if _, err := Open(t.Context(), s, s.request(s.source())); err != nil {
		t.Fatal(err)
	}
	want := []string{dir + "/InRelease", dir + "/main/binary-amd64/by-hash/SHA256/" + release.files[index+".zst"].sha256, dir + "/" + index + ".zst", hash}
	for i := range want {
		want[i] = "/" + want[i]
	}
	if d := cmp.Diff(want, s.asked); d != "" {
		t.Error(d)
	}
	source := s.source()
	source.NoHash = true
	if _, err := Open(t.Context(), s, s.request(source)); !errors.Is(err, ErrDigest) {
		t.Error(err)
	}
}

func TestFlat(t *testing.T) {
	s := newSite(t)
	s.publish("apt/stable", "Origin: x\nDate: Wed, 20 May 2026 10:00:00 UTC\n", map[string]string{"Packages": stanzaOf("a", "1")})
	source := Source{URI: s.url + "/apt", Suite: "stable/", SignedBy: Keys{Inline: public(t, s.keys...)}}
	a, err := Open(t.Context(), s, s.request(source))
	if err != nil {
		t.Fatal(err)
	}
	p := a.Universe.Find(packaging.Relation{Name: "a"})
	if len(p) != 1 || a.Address(p[0]) != s.url+"/apt/pool/a_1_amd64.deb" {
		t.Errorf("%v", p)
	}
}

// TestArchitectureAll: where packages for all architectures have an index of
// their own, that is read too; what is of another architecture never counts.
func TestArchitectureAll(t *testing.T) {
	s := newSite(t)
	all := strings.ReplaceAll(stanzaOf("doc", "1"), "amd64", "all")
	index := map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "1") + strings.ReplaceAll(stanzaOf("b", "1"), "amd64", "i386"), "main/binary-all/Packages": all}
	s.publish("debian/dists/bookworm", bookworm, index)
	a, err := Open(t.Context(), s, s.request(s.source()))
	if err != nil {
		t.Fatal(err)
	}
	if have := names(a, "a") + names(a, "b") + names(a, "doc"); have != "a 1 (amd64)" {
		t.Error("where the index has all:", have)
	}
	s.publish("debian/dists/bookworm", strings.Replace(bookworm, "No-Support-for-Architecture-all: Packages\n", "", 1), index)
	if a, err = Open(t.Context(), s, s.request(s.source())); err != nil {
		t.Fatal(err)
	}
	if have := names(a, "a") + names(a, "b") + names(a, "doc"); have != "a 1 (amd64)doc 1 (all)" {
		t.Error("where it has not:", have)
	}
}

// TestPolicy has several versions of one package in several suites.
func TestPolicy(t *testing.T) {
	backports := strings.NewReplacer("Suite: oldstable", "Suite: oldstable-backports", "Codename: bookworm", "Codename: bookworm-backports",
		"Components", "NotAutomatic: yes\nButAutomaticUpgrades: yes\nComponents").Replace(bookworm)
	experimental := strings.NewReplacer("Suite: oldstable", "Suite: experimental", "Codename: bookworm", "Codename: rc-buggy",
		"Components", "NotAutomatic: yes\nComponents").Replace(bookworm)
	updates := strings.NewReplacer("Suite: oldstable", "Suite: oldstable-updates", "Codename: bookworm", "Codename: bookworm-updates").Replace(bookworm)
	tests := []struct {
		name        string
		preferences []Preference
		want        string
	}{
		{"of itself", nil, "a 1.10, b 9, c 3"},
		{"a suite preferred", []Preference{{Suite: "bookworm-backports", Priority: 900}}, "a 2, b 9, c 3"},
		{"by its suite's name", []Preference{{Suite: "oldstable", Priority: 990}}, "a 1.9, b 9, c 3"},
		{"one package", []Preference{{Priority: 10}, {Packages: []string{"a*"}, Suite: "experimental", Priority: 600}}, "a 3, b 9, c 3"},
		{"one version", []Preference{{Packages: []string{"a"}, Version: "1.9*", Priority: 1001}}, "a 1.9, b 9, c 3"},
		{"never", []Preference{{Packages: []string{"b"}, Priority: -1}, {Origin: "Debian", Suite: "rc-buggy", Priority: -10}}, "a 1.10"},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			s := newSite(t)
			s.publish("debian/dists/bookworm", bookworm, map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "1.9")})
			s.publish("debian/dists/bookworm-updates", updates, map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "1.10") + "\n" + stanzaOf("a", "1.8")})
			s.publish("debian/dists/bookworm-backports", backports, map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "2") + "\n" + stanzaOf("b", "9")})
			s.publish("debian/dists/experimental", experimental, map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "3") + "\n" + stanzaOf("c", "3")})
			var sources []Source
			for _, suite := range []string{"experimental", "bookworm-backports", "bookworm", "bookworm-updates"} {
				source := s.source()
				source.Suite = suite
				sources = append(sources, source)
			}
			r := s.request(sources...)
			r.Preferences = x.preferences
			a, err := Open(t.Context(), s, r)
			if err != nil {
				t.Fatal(err)
			}
			var have []string
			for _, n := range []string{"a", "b", "c"} {
				for _, p := range a.Universe.Find(packaging.Relation{Name: n}) {
					have = append(have, p.Name+" "+p.Version)
				}
			}
			if have := strings.Join(have, ", "); have != x.want {
				t.Errorf("%s, want %s", have, x.want)
			}
		})
	}
	s := newSite(t)
	r := s.request(s.source())
	r.Preferences = []Preference{{Packages: []string{"[a"}}}
	if _, err := Open(t.Context(), s, r); err == nil || !strings.Contains(err.Error(), "[a") {
		t.Error(err)
	}
}

// TestWanted: of the repositories that a machine knows only those count that are
// of the wanted distribution and release.
func TestWanted(t *testing.T) {
	docker := "Origin: Docker\nSuite: bookworm\nDate: Wed, 20 May 2026 10:00:00 UTC\nArchitectures: amd64\nComponents: main\n"
	arrange := func(t *testing.T) (*site, Request) {
		s := newSite(t)
		index := func(name string) map[string]string {
			return map[string]string{"main/binary-amd64/Packages": stanzaOf(name, "1")}
		}
		s.publish("debian/dists/bookworm", bookworm, index("own"))
		security := strings.NewReplacer("oldstable", "oldstable-security", "Codename: bookworm", "Codename: bookworm-security", "12.9", "12").Replace(bookworm)
		s.publish("debian/dists/bookworm-security", security, index("security"))
		trixie := strings.NewReplacer("oldstable", "stable", "bookworm", "trixie", "12.9", "13.1").Replace(bookworm)
		s.publish("debian/dists/trixie", trixie, index("trixie"))
		s.publish("debian/dists/other", strings.ReplaceAll(docker, "bookworm", "other"), index("other"))
		s.publish("docker/dists/bookworm", docker, index("docker"))
		var sources []Source
		for _, suite := range []string{"bookworm", "bookworm-security", "trixie", "other"} {
			source := s.source()
			source.Suite = suite
			sources = append(sources, source)
		}
		source := s.source()
		source.URI = s.url + "/docker"
		r := s.request(append(sources, source)...)
		r.Distribution, r.Release = "debian", "12"
		return s, r
	}
	read := func(t *testing.T, s *site, r Request) (string, error) {
		a, err := Open(t.Context(), s, r)
		if err != nil {
			return "", err
		}
		var have []string
		for _, x := range []string{"own", "security", "trixie", "other", "docker"} {
			if names(a, x) != "" {
				have = append(have, x)
			}
		}
		return strings.Join(have, " ") + "; " + strings.ReplaceAll(strings.Join(a.Notes, "; "), s.url, ""), nil
	}
	tests := []struct {
		name   string
		change func(s *site, r *Request)
		want   string // what is read, and the notes, or a part of the error
	}{
		{"as it is", func(*site, *Request) {}, "own security docker; /debian trixie: skipped: it is Debian 13.1 (trixie), which is not known to be for debian 12; /debian other: skipped: it is "},
		{"by its codename", func(_ *site, r *Request) { r.Release = "bookworm" }, "own security docker; /debian trixie: skipped: it is Debian 13.1 (trixie), which is not known to be for debian bookworm; /debian other: skipped: it is "},
		{"the next release", func(_ *site, r *Request) { r.Release = "13" }, "trixie; "},
		{"all", func(_ *site, r *Request) { r.Distribution, r.Release = "", "" }, "own security trixie other docker; "},
		{"named", func(_ *site, r *Request) { r.Sources[3].Given = true }, "own security other docker; /debian trixie: skipped: it is Debian 13.1 (trixie), which is not known to be for debian 12"},
		{"another release named", func(_ *site, r *Request) { r.Sources[2].Given = true }, "own security docker; /debian trixie: skipped: it is Debian 13.1 (trixie), which is not known to be for debian 12"},
		{"another maker's for another release, broken", func(_ *site, r *Request) {
			r.Sources[2].Given, r.Sources[3].Given = true, true
			r.Sources[3].Suite = "trixie-tools"
		}, "own security docker; skipped: /debian trixie-tools: neither InRelease nor Release"},
		{"only another release named", func(_ *site, r *Request) { r.Sources = r.Sources[2:3]; r.Sources[0].Given = true },
			"no repository is for debian 12 on amd64; /debian trixie: skipped: it is Debian 13.1 (trixie)"},
		{"not there", func(_ *site, r *Request) { r.Release = "1" }, "no repository is for debian 1 on amd64"},
		{"another distribution", func(_ *site, r *Request) { r.Distribution, r.Release = "ubuntu", "24.04" }, "no repository is for ubuntu 24.04 on amd64"},
		// To go on without a release's own updates is what an attacker would want.
		{"its own is broken", func(s *site, _ *Request) { s.files["debian/dists/bookworm-security/InRelease"][100] ^= 1 }, "/debian bookworm-security: "},
		{"a stranger is broken", func(s *site, _ *Request) { delete(s.files, "debian/dists/other/InRelease") }, "own security docker; skipped: /debian other: neither InRelease nor Release"},
		{"what was named is broken", func(s *site, r *Request) {
			delete(s.files, "debian/dists/other/InRelease")
			r.Sources[3].Given = true
		}, "/debian other: neither InRelease nor Release"},
		{"not for this architecture", func(_ *site, r *Request) { r.Sources[4].Architectures = []string{"arm64"} }, "own security; /docker bookworm: not for amd64"},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			s, r := arrange(t)
			x.change(s, &r)
			have, err := read(t, s, r)
			if err != nil {
				have = strings.ReplaceAll(err.Error(), s.url, "")
			}
			if !strings.Contains(have, x.want) {
				t.Errorf("have %s\nwant %s", have, x.want)
			}
		})
	}
}

// TestCounts: what one names for several releases is sorted out by what the
// distribution's own repositories are called.
func TestCounts(t *testing.T) {
	w := &wantedRelease{distribution: "debian", release: "12"}
	w.learn(&Release{Origin: "Debian", Version: "12.9", Codename: "bookworm", Suite: "oldstable"})
	w.learn(&Release{Origin: "Debian", Version: "13.1", Codename: "trixie", Suite: "stable"})
	for _, x := range []struct {
		suite, codename string
		given, want     bool
	}{
		{"bookworm", "bookworm", true, true}, {"bookworm", "", false, true}, {"tools-bookworm", "tools-bookworm", false, true},
		{"trixie", "trixie", true, false}, {"tools-trixie", "", true, false}, {"stable", "trixie", true, false},
		{"stable", "", true, true}, {"stable", "", false, false}, {"./", "", true, true},
	} {
		r := Repository{Source: Source{Suite: x.suite, Given: x.given}, Release: &Release{Origin: "Other", Codename: x.codename}}
		if have := w.counts(r); have != x.want {
			t.Errorf("%+v: %t", x, have)
		}
	}
}

// TestBadStanza: one package that cannot be used does not hide the others.
func TestBadStanza(t *testing.T) {
	s := newSite(t)
	s.publish("debian/dists/bookworm", bookworm, map[string]string{
		"main/binary-amd64/Packages": stanzaOf("a", "1") + "\n" + strings.Replace(stanzaOf("b", "1"), "SHA256", "MD5sum", 1) + "\n" + stanzaOf("c", "1"),
	})
	a, err := Open(t.Context(), s, s.request(s.source()))
	if err != nil {
		t.Fatal(err)
	}
	if names(a, "a") == "" || names(a, "b") != "" || names(a, "c") == "" {
		t.Error("which packages there are")
	}
	want := []string{s.url + "/debian bookworm: main/binary-amd64/Packages, line 9: skipped: b 1 (amd64): it has no SHA256 digest, so it cannot be verified"}
	if d := cmp.Diff(want, a.Notes); d != "" {
		t.Error(d)
	}
}

func TestManyBadStanzas(t *testing.T) {
	s := newSite(t)
	s.publish("debian/dists/bookworm", bookworm, map[string]string{
		"main/binary-amd64/Packages": strings.Repeat("Package: b\n\n", 30) + stanzaOf("a", "1"),
	})
	a, err := Open(t.Context(), s, s.request(s.source()))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(a.Notes); n != 11 || !strings.HasSuffix(a.Notes[10], "30 packages skipped in total") || names(a, "a") == "" {
		t.Errorf("%d notes: %v", n, a.Notes)
	}
}

// cut gives the archive of the packages in testdata, which are Debian 12's.
func cut(t *testing.T) *Archive {
	t.Helper()
	b, err := os.ReadFile("testdata/cut/Packages")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.publish("debian/dists/bookworm", bookworm, map[string]string{"main/binary-amd64/Packages": string(b)})
	a, err := Open(t.Context(), s, s.request(s.source()))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestClosure compares with testdata/cut/closure.txt, which apt-get -s
// --no-install-recommends install said of the same packages, where all that is
// in every installation was there.
func TestClosure(t *testing.T) {
	a := cut(t)
	base, err := a.Universe.BaseClosure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	have, why := solved(t, a, base, []string{"socat", "conntrack", "ebtables", "ipset", "ipvsadm", "chrony", "bash-completion"})
	b, err := os.ReadFile("testdata/cut/closure.txt")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(strings.TrimSpace(string(b)), "\n"), have); d != "" {
		t.Error(d, why)
	}
	if len(base) != 96 || !slices.ContainsFunc(base, func(p *packaging.Package) bool { return p.Name == "libc6" }) {
		t.Errorf("the base has %d packages", len(base))
	}
}

func TestFill(t *testing.T) {
	a := cut(t)
	found := append(a.Universe.Find(packaging.Relation{Name: "socat"}), a.Universe.Find(packaging.Relation{Name: "bash"})...)
	if err := a.Fill(found); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("testdata/cut/Packages")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range found {
		if !strings.HasPrefix(string(p.Record), "Package: "+p.Name+"\n") || !strings.Contains(string(b), "\n\n"+string(p.Record)+"\n") {
			t.Errorf("%s", p.Record)
		}
	}
	if err := a.Fill([]*packaging.Package{{Name: "stranger"}}); err == nil || !strings.Contains(err.Error(), "stranger") {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	s := newSite(t)
	s.publish("debian/dists/bookworm", bookworm, map[string]string{"main/binary-amd64/Packages": stanzaOf("a", "1")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, s, s.request(s.source())); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

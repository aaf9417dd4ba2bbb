package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/apt"
	"github.com/mensylisir/kubexm/testdata/upstream"
)

func carried(a manifest.Artifact) []string {
	var out []string
	for _, m := range a.Members {
		if m.Package != "" {
			out = append(out, m.Package)
		}
	}
	return out
}

func TestPin(t *testing.T) {
	s := newSite(t)
	asked := ask([]string{line}, "nothing | socat", "udev")
	a, notes, err := Pin(t.Context(), s, asked, s.options())
	if err != nil {
		t.Fatal(err)
	}
	if len(notes) > 0 {
		t.Error(notes)
	}
	if d := cmp.Diff([]string{"libudev1 252-1 (amd64)", "libwrap0 7.6.q-32 (amd64)", "socat 1:1.7.4-2 (amd64)", "udev 252-1 (amd64)"}, carried(a)); d != "" {
		t.Error(d)
	}
	want := &manifest.PackageSet{Format: manifest.Deb, Want: []string{"nothing | socat", "udev"}, Sources: []string{line}, Keys: []string{"key.asc"},
		Repositories: []string{"https://deb.test/debian bookworm main"}, Date: then.Add(-time.Hour), Base: []string{"libc6 2.36-9 (amd64)"}}
	if d := cmp.Diff(want, a.Packages); d != "" {
		t.Error(d)
	}
	if asked.Packages.Date != (time.Time{}) || len(asked.Members) > 0 {
		t.Error("what was asked for was changed")
	}
	socat := a.Members[slices.IndexFunc(a.Members, func(m manifest.Member) bool { return strings.HasPrefix(m.Package, "socat") })]
	if d := cmp.Diff(manifest.Member{Path: "pool/socat_1.7.4-2_amd64.deb", Name: "pool/socat_1.7.4-2_amd64.deb", Size: socat.Size, SHA256: socat.SHA256, Package: "socat 1:1.7.4-2 (amd64)",
		Address: "https://deb.test/debian/pool/main/s/socat/socat_1.7.4-2_amd64.deb",
		Record: "Package: socat\nVersion: 1:1.7.4-2\nArchitecture: amd64\nSection: net\nDepends: libc6 (>= 2.36), libwrap0 | nothing\n" +
			"Description: made by a test, it does nothing\n"}, socat); d != "" {
		t.Error(d)
	}
	total := int64(0)
	for _, m := range a.Members {
		total += m.Size
	}
	if a.Trust != manifest.FromPublished || a.Size != total || a.ID != asked.ID {
		t.Errorf("%+v", a)
	}
	metadataOf(t, a)
	again, _, err := Pin(t.Context(), s, a, s.options())
	if err != nil {
		t.Fatal(err)
	}
	same(t, a, again)
	throughLock(t, a)
}

// metadataOf gives the repository's own files, which have to be those that are pinned.
func metadataOf(t *testing.T, a manifest.Artifact) []File {
	t.Helper()
	files, err := Metadata(a)
	if err != nil {
		t.Fatal(err)
	}
	var have, want []manifest.Member
	for _, f := range files {
		have = append(have, pinned(f))
	}
	for _, m := range a.Members {
		if m.Package == "" {
			want = append(want, m)
		}
	}
	slices.SortFunc(have, func(a, b manifest.Member) int { return strings.Compare(a.Path, b.Path) })
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
	return files
}

// throughLock wants what a lock's text gives back to be what went into it.
func throughLock(t *testing.T, a manifest.Artifact) {
	t.Helper()
	l := &manifest.Lock{APIVersion: manifest.APIVersion, Kind: "Lock", Cluster: "demo", Created: then, Serial: 20260520120000, Config: "sha256:" + strings.Repeat("a", 64),
		Platforms: []manifest.Platform{a.Platform.Machine()}, Sets: []manifest.Set{{Name: a.Sets[0], Components: map[string]string{"kubernetes": a.Sets[0]}}}, Artifacts: []manifest.Artifact{a}}
	text, err := manifest.EncodeLock(l)
	if err != nil {
		t.Fatal(err)
	}
	back, problems := manifest.DecodeLock(bytes.NewReader(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	same(t, a, back.Artifacts[0])
}

// TestPinSources: every way to say where packages come from.
func TestPinSources(t *testing.T) {
	s := newSite(t)
	s.put(t, "apt/own.list", "deb [signed-by=key.asc] https://deb.test/debian bookworm main\n")
	s.put(t, "apt/own.sources", "Types: deb\nURIs: https://deb.test/debian\nSuites: bookworm\nComponents: main\nSigned-By: key.asc\n")
	s.put(t, "copied/sources.list.d/own.list", line)
	s.put(t, "copied/sources.list.d/readme.txt", "nothing")
	write(t, filepath.Join(s.etc, "apt/sources.list"), "deb [signed-by="+s.base+"/key.asc] https://deb.test/debian bookworm main\n")
	for _, sources := range [][]string{{line}, {"apt/own.list"}, {"apt/own.sources"}, {filepath.Join(s.base, "apt/own.list")}, {"copied/"}, nil,
		{"deb [signed-by=key.asc] https://deb.test/debian bookworm main", "apt/"}} {
		a := ask(sources, "socat")
		if len(sources) == 0 || !strings.HasPrefix(sources[0], "deb h") && sources[0] != "copied/" {
			a.Packages.Keys = nil // the source names its own
		}
		got, _, err := Pin(t.Context(), s, a, s.options())
		if err != nil {
			t.Errorf("%q: %v", sources, err)
			continue
		}
		if d := cmp.Diff([]string{"libwrap0 7.6.q-32 (amd64)", "socat 1:1.7.4-2 (amd64)"}, carried(got)); d != "" {
			t.Errorf("%q: %s", sources, d)
		}
	}
}

// TestPinReleases: one list of sources is of several releases, and each takes its own.
func TestPinReleases(t *testing.T) {
	s := newSite(t)
	newer := slices.Clone(debs)
	newer[4].Version = "7.6.q-36"
	s.publish(t, upstream.Suite{Codename: "trixie", Version: "13.1", Date: then.Add(-time.Minute)}, newer...)
	for release, want := range map[string]string{"12": "libwrap0 7.6.q-32 (amd64)", "13": "libwrap0 7.6.q-36 (amd64)"} {
		a := ask([]string{line, strings.Replace(line, "bookworm", "trixie", 1)}, "socat")
		a.Platform.Release = release
		a.Name = a.Platform.System()
		got, notes, err := Pin(t.Context(), s, a, s.options())
		if err != nil {
			t.Fatal(err)
		}
		if got := carried(got); got[0] != want || len(got) != 2 {
			t.Errorf("%s: %s", release, got)
		}
		if len(notes) != 1 || !strings.Contains(notes[0], "skipped: it is Debian 1") {
			t.Errorf("%q", notes)
		}
		if len(got.Packages.Repositories) != 1 {
			t.Errorf("%q", got.Packages.Repositories)
		}
	}
}

// TestPinRefuses breaks one thing at a time; each is told for what it is.
func TestPinRefuses(t *testing.T) {
	const inRelease = "dists/bookworm/InRelease"
	edit := func(name, old, with string) func(*testing.T, *site, *manifest.Artifact) {
		return func(t *testing.T, s *site, _ *manifest.Artifact) {
			b, err := os.ReadFile(filepath.Join(s.dir, name))
			if err != nil || !bytes.Contains(b, []byte(old)) {
				t.Fatal(name, err)
			}
			write(t, filepath.Join(s.dir, name), strings.Replace(string(b), old, with, 1))
		}
	}
	asking := func(names ...string) func(*testing.T, *site, *manifest.Artifact) {
		return func(_ *testing.T, _ *site, a *manifest.Artifact) { a.Packages.Want = names }
	}
	from := func(sources ...string) func(*testing.T, *site, *manifest.Artifact) {
		return func(_ *testing.T, _ *site, a *manifest.Artifact) { a.Packages.Sources = sources }
	}
	tests := []struct {
		name   string
		change func(*testing.T, *site, *manifest.Artifact)
		reason error
		want   []string // parts of what is said
	}{
		{"tampered", edit(inRelease, "Version: 12.9", "Version: 12.8"), apt.ErrBadSignature, []string{"packages of debian-12 for linux/amd64: https://deb.test/debian bookworm: "}},
		{"not signed", func(t *testing.T, s *site, _ *manifest.Artifact) {
			if err := os.Rename(filepath.Join(s.dir, inRelease), filepath.Join(s.dir, "dists/bookworm/Release")); err != nil {
				t.Fatal(err)
			}
		}, apt.ErrUnsigned, nil},
		{"expired", func(t *testing.T, s *site, _ *manifest.Artifact) {
			s.publish(t, upstream.Suite{Codename: "bookworm", Version: "12.9", Date: then.AddDate(0, 0, -8), ValidUntil: then.Add(-time.Second)}, debs...)
		}, apt.ErrStale, []string{"2026-05-20T11:59:59Z"}},
		{"in the future", func(t *testing.T, s *site, _ *manifest.Artifact) {
			s.publish(t, upstream.Suite{Codename: "bookworm", Version: "12.9", Date: then.Add(time.Hour)}, debs...)
		}, apt.ErrFuture, nil},
		{"a wrong key", func(t *testing.T, s *site, _ *manifest.Artifact) {
			other, err := upstream.NewSigner(then.AddDate(-1, 0, 0))
			if err != nil {
				t.Fatal(err)
			}
			s.signer = other
			s.publish(t, upstream.Suite{Codename: "bookworm", Version: "12.9", Date: then.Add(-time.Hour)}, debs...)
		}, apt.ErrUnknownKey, []string{"the given keys"}},
		{"an index of other bytes", func(t *testing.T, s *site, _ *manifest.Artifact) {
			other := slices.Clone(debs)
			other[4].Fields = []string{"Depends: evil"}
			fake := *s
			fake.dir = t.TempDir()
			fake.publish(t, upstream.Suite{Codename: "bookworm", Version: "12.9", Date: then.Add(-time.Hour)}, other...)
			b, err := os.ReadFile(filepath.Join(fake.dir, "dists/bookworm/main/binary-amd64/Packages.gz"))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(s.dir, "dists/bookworm/main/binary-amd64/by-hash")); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(s.dir, "dists/bookworm/main/binary-amd64/Packages.gz"), string(b))
		}, apt.ErrDigest, nil},
		{"all that is not known", asking("socta", "socat", "crony | cron"), nil, []string{"no repository has the package socta; available: socat", "no repository has the package crony | cron; available: chrony"}},
		{"what cannot be", asking("tools"), nil, []string{"tools 1 (amd64) requires broken", "broken 1 (amd64) requires libnowhere (>= 2), which no package provides"}},
		{"what cannot be together", asking("chrony", "ntpsec"), nil, []string{"conflicts with time-daemon"}},
		{"no name", asking("a, b"), nil, []string{`"a, b" is not a package name`}},
		{"no names", asking(), nil, []string{"no packages are requested"}},
		{"nothing configured", from(), nil, []string{"no repository of debian 12 (amd64) is configured on this machine: ", "spec.bundle.operatingSystems.repositories"}},
		{"nothing of the release configured", func(t *testing.T, s *site, a *manifest.Artifact) {
			write(t, filepath.Join(s.etc, "apt/sources.list"), line)
			a.Packages.Sources, a.Platform.Release, a.Name = nil, "13", "debian-13"
		}, nil, []string{"no repository is for debian 13 on amd64; https://deb.test/debian bookworm: skipped: it is Debian 12.9 (bookworm)", "spec.bundle.operatingSystems.repositories"}},
		{"another release alone", func(_ *testing.T, _ *site, a *manifest.Artifact) { a.Platform.Release, a.Name = "13", "debian-13" },
			nil, []string{"no repository is for debian 13 on amd64; https://deb.test/debian bookworm: skipped: it is Debian 12.9 (bookworm)"}},
		{"another architecture", func(_ *testing.T, _ *site, a *manifest.Artifact) { a.Platform.Arch = "arm64" }, apt.ErrOtherRelease, []string{"component main for arm64 does not exist; it has main for amd64"}},
		{"no key", func(_ *testing.T, _ *site, a *manifest.Artifact) { a.Packages.Keys = []string{"none.asc"} }, os.ErrNotExist, []string{"none.asc"}},
		{"no file", from(line, "own.list"), nil, []string{"own.list"}},
		{"no folder", from("folder/"), nil, []string{"folder/"}},
		{"no suite", from("deb https://deb.test/debian"), nil, []string{"repositories[0]:", "requires a URI and a suite"}},
		{"off", func(t *testing.T, s *site, a *manifest.Artifact) {
			s.put(t, "off.sources", "Types: deb\nURIs: https://deb.test/debian\nSuites: bookworm\nComponents: main\nEnabled: no\n")
			a.Packages.Sources = []string{"off.sources"}
		}, nil, []string{"it contains no package source"}},
		{"of rpm", from("own.repo"), nil, []string{"is for rpm packages"}},
		{"of no format", func(_ *testing.T, _ *site, a *manifest.Artifact) { a.Packages.Format = "apk" }, nil, []string{`"apk" is not a package format`}},
		{"not there", func(_ *testing.T, s *site, _ *manifest.Artifact) { clear(s.folders) }, os.ErrNotExist, []string{"neither InRelease nor Release"}},
	}
	for _, x := range tests {
		t.Run(x.name, func(t *testing.T) {
			s := newSite(t)
			a := ask([]string{line}, "socat")
			x.change(t, s, &a)
			got, _, err := Pin(t.Context(), s, a, s.options())
			if err == nil {
				t.Fatal("it was taken")
			}
			if x.reason != nil && !errors.Is(err, x.reason) {
				t.Errorf("%v is not %v", err, x.reason)
			}
			for _, part := range x.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v\nsays nothing of %s", err, part)
				}
			}
			if len(got.Members) > 0 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestPinTellsNoPassword: what opens a repository is not in what everybody reads.
func TestPinTellsNoPassword(t *testing.T) {
	s := newSite(t)
	s.folders["https://me:secret@deb.test/debian"] = s.dir
	write(t, filepath.Join(s.etc, "apt/sources.list"), "deb [signed-by="+s.base+"/key.asc] https://me:secret@deb.test/debian bookworm main\ndeb ftp://me:secret@deb.test/debian bookworm main\n")
	a, notes, err := Pin(t.Context(), s, ask(nil, "socat"), s.options())
	if err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(a, a.Packages, notes); strings.Contains(all, "secret") || !strings.Contains(all, "https://deb.test/debian/pool/main/s/socat/") || len(notes) == 0 {
		t.Error(all)
	}
	_, notes, err = Pin(t.Context(), s, ask(nil, "nowhere"), s.options())
	if all := fmt.Sprint(err, notes); err == nil || strings.Contains(all, "secret") {
		t.Error(all)
	}
}

func TestPinEnds(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Pin(ctx, s, ask([]string{line}, "socat"), s.options()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

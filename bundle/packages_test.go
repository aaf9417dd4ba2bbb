package bundle

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/bundle/fetch"
	"github.com/mensylisir/kubexm/manifest"
	internet "github.com/mensylisir/kubexm/testdata/upstream"
)

// debs is an archive of packages that clients reach at deb.example/debian, and
// what a config asks for of it.
type debs struct {
	dir, base string
	signer    *internet.Signer
	server    *internet.Server
	url       string
	list      []internet.Deb
	config    []byte
}

func newDebs(t *testing.T) *debs {
	t.Helper()
	d := &debs{dir: t.TempDir(), base: t.TempDir(), config: []byte("kind: Cluster\n"), list: []internet.Deb{
		{Name: "tool", Version: "1:2.0-1", Arch: "amd64", Fields: []string{"Depends: words, libtool"}, Files: map[string]string{"usr/bin/tool": strings.Repeat("#!/bin/sh\n", 40_000)}},
		{Name: "tool", Version: "1:2.0-1", Arch: "arm64", Fields: []string{"Depends: words, libtool"}},
		{Name: "libtool", Version: "5", Arch: "amd64"}, {Name: "libtool", Version: "5", Arch: "arm64"},
		{Name: "words", Version: "3"}, {Name: "more", Version: "1"},
	}}
	var err error
	if d.signer, err = internet.NewSigner(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	key, err := d.signer.Public()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.base, "key.asc"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	d.publish(t, 0)
	if d.server, err = internet.New(t.Context(), &manifest.Lock{}, internet.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := d.server.Folder("deb.example/debian", d.dir); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(d.server)
	t.Cleanup(s.Close)
	d.url = s.URL
	return d
}

// publish writes the archive as it is so many days later.
func (d *debs) publish(t *testing.T, days int) {
	t.Helper()
	suite := internet.Suite{Codename: "bookworm", Version: "12", Date: time.Date(2025, 5, 6, 12, 0, 0, 0, time.UTC).AddDate(0, 0, days)}
	if err := d.signer.WriteApt(d.dir, suite, d.list...); err != nil {
		t.Fatal(err)
	}
}

func (d *debs) client(t *testing.T, cache *fetch.Cache) *fetch.Client {
	t.Helper()
	c, err := fetch.New(fetch.Options{
		Cache: cache, Base: d.base, Etc: t.TempDir(), Attempts: 2, Backoff: time.Millisecond,
		Sources: manifest.Sources{Replace: []manifest.Replacement{{From: "deb.example", To: d.url + "/deb.example", PlainHTTP: true}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// resolved is what a config asks for: packages for two architectures.
func (d *debs) resolved(want ...string) *manifest.Lock {
	l := unpinned()
	l.Config, l.Images, l.Artifacts = digest.FromBytes(d.config).String(), nil, nil
	for _, arch := range []string{"amd64", "arm64"} {
		l.Artifacts = append(l.Artifacts, manifest.Artifact{
			ID: "packages/debian-12/12/linux/" + arch, Kind: manifest.Packages, Name: "debian-12", Version: "12", Sets: []string{"v1.32.2"},
			Platform: manifest.Platform{OS: "linux", Arch: arch, Distribution: "debian", Release: "12"},
			Packages: &manifest.PackageSet{Format: manifest.Deb, Want: want, Sources: []string{"deb https://deb.example/debian bookworm main"}, Keys: []string{"key.asc"}},
		})
	}
	return l
}

func (d *debs) pin(t *testing.T, l *manifest.Lock) *manifest.Lock {
	t.Helper()
	pinned, err := Pin(t.Context(), d.client(t, openCache(t)), l, PinOptions{Parallel: 2, Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	return pinned
}

// build gives the archive of a lock, and what it was to be.
func (d *debs) build(t *testing.T, l *manifest.Lock, cache *fetch.Cache, parallel int, since *manifest.Inventory) (string, Plan, *BuildResult) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	var plan Plan
	b, err := Build(t.Context(), BuildRequest{
		Lock: l, Config: d.config, Output: path, Cache: cache, Fetcher: d.client(t, cache), Parallel: parallel, Since: since, Planned: func(p Plan) { plan = p },
	})
	if err != nil {
		t.Fatal(err)
	}
	return path, plan, b
}

func TestPackagesInABundle(t *testing.T) {
	d := newDebs(t)
	l := d.pin(t, d.resolved("tool"))
	sizes := map[string]int64{}
	var download, all int64
	for _, a := range l.Artifacts {
		if !pinnedArtifact(a) || a.Size != bytesOf(a) {
			t.Fatalf("%s is not pinned, or has not %d bytes: %+v", a.ID, bytesOf(a), a)
		}
		for _, m := range a.Members {
			if _, twice := sizes[m.SHA256]; !twice {
				all += m.Size
				if m.Package != "" {
					download += m.Size
				}
			}
			sizes[m.SHA256] = m.Size
		}
	}
	cache := openCache(t)
	path, plan, _ := d.build(t, l, cache, 1, nil)
	if plan.Download != download || plan.Bytes != all || plan.Blobs != len(sizes) || plan.Cached != 0 {
		t.Errorf("planned %+v, want %d bytes of %d in %d blobs to download", plan, download, all, len(sizes))
	}
	again, plan, _ := d.build(t, l, cache, 3, nil)
	if plan.Download != 0 || plan.Cached != all {
		t.Errorf("with all of it there: %+v", plan)
	}
	other, _, _ := d.build(t, l, openCache(t), 8, nil)
	for _, x := range []string{again, other} {
		if !bytes.Equal(readFile(t, path), readFile(t, x)) {
			t.Error("one lock gives archives of other bytes")
		}
	}
	b, err := Verify(t.Context(), path, anyone, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if s := b.Summary; s.Packages != 6 || s.PackageBytes != l.Artifacts[0].Size+l.Artifacts[1].Size || s.Files != 0 || s.Artifacts != 2 {
		t.Errorf("summary %+v", s)
	}
	for _, m := range b.archive.Members() {
		for _, x := range l.Artifacts[0].Members {
			if m.Digest == "sha256:"+x.SHA256 && m.Stored() == (x.Package == "") {
				t.Errorf("%s: stored %v", x.Path, m.Stored())
			}
		}
	}
}

// A bundle's repository lies in a folder as apt reads it.
func TestPackagesExtracted(t *testing.T) {
	d := newDebs(t)
	l := d.pin(t, d.resolved("tool"))
	path, _, _ := d.build(t, l, openCache(t), 2, nil)
	b, err := Open(t.Context(), path, anyone)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	dir := filepath.Join(t.TempDir(), "out")
	n, err := b.ExtractFiles(t.Context(), dir, ExtractOptions{Names: []string{"debian-12"}})
	if err != nil || n != len(l.Artifacts[0].Members)+len(l.Artifacts[1].Members) {
		t.Fatalf("%d files, %v", n, err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		at := filepath.Join(dir, "debian-12", "12", "linux-"+arch)
		index, release := readFile(t, filepath.Join(at, "Packages")), readFile(t, filepath.Join(at, "Release"))
		if want := fmt.Sprintf(" %x %d Packages\n", sha256.Sum256(index), len(index)); !bytes.Contains(release, []byte(want)) {
			t.Errorf("Release lists no %q:\n%s", want, release)
		}
		files := 0
		for line := range strings.Lines(string(index)) {
			name, ok := strings.CutPrefix(line, "Filename: ")
			if !ok {
				continue
			}
			files++
			content := readFile(t, filepath.Join(at, strings.TrimSpace(name)))
			if !bytes.Contains(index, fmt.Appendf(nil, "SHA256: %x\n", sha256.Sum256(content))) {
				t.Errorf("%s is not what Packages says", name)
			}
		}
		if files != 3 {
			t.Errorf("%s: Packages names %d files:\n%s", arch, files, index)
		}
	}
}

// A delta leaves out the packages that the site holds.
func TestPackagesInADelta(t *testing.T) {
	d := newDebs(t)
	base, _, _ := d.build(t, d.pin(t, d.resolved("tool")), openCache(t), 2, nil)
	d.list[4].Version = "4" // words, for both architectures
	d.publish(t, 1)
	newer := d.pin(t, d.resolved("tool"))
	newer.Serial++
	cache := openCache(t)
	path, plan, built := d.build(t, newer, cache, 2, holding(t, base))
	words := newer.Artifacts[0].PackageList()[2]
	if words.Name != "words" || plan.Download != words.Size || built.Delta.Blobs != 5 || cache.Has(words.SHA256, words.Size) { // with two files of metadata for each architecture
		t.Errorf("planned %+v, saved %+v", plan, built.Delta)
	}
	whole, err := OpenPartial(t.Context(), path, anyone, Bases{Explicit: []string{base}})
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if err := whole.CheckComplete(); err != nil {
		t.Error(err)
	}
	full, _, _ := d.build(t, newer, openCache(t), 2, nil)
	joined := filepath.Join(t.TempDir(), "joined.tar.zst")
	if _, err := Complete(t.Context(), CompleteRequest{Delta: path, Policy: Policy{AllowUnsigned: true}, Bases: []string{base}, Output: joined, Parallel: 2}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, full), readFile(t, joined)) {
		t.Error("delta and base together are not the whole archive")
	}
}

// A build that a package broke off goes on where it was, and ends in the same bytes.
func TestInterruptedBuildOfPackagesIsContinued(t *testing.T) {
	d := newDebs(t)
	l := d.pin(t, d.resolved("tool"))
	want, _, _ := d.build(t, l, openCache(t), 2, nil)
	cache := openCache(t)
	at := "/deb.example/debian/pool/main/t/tool/tool_2.0-1_amd64.deb"
	d.server.Break(at, internet.Fault{CutAfter: 60_000})
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	r := BuildRequest{Lock: l, Config: d.config, Output: path, Cache: cache, Fetcher: d.client(t, cache), Parallel: 2}
	_, err := Build(t.Context(), r)
	if err == nil || !strings.HasPrefix(err.Error(), "tool 1:2.0-1 (amd64) of debian-12: ") {
		t.Fatalf("%v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("half an archive stands")
	}
	d.server.Mend()
	d.server.Forget()
	if _, err := Build(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, want), readFile(t, path)) {
		t.Error("the archive has other bytes")
	}
	if c := d.server.Counts()[at]; c.Bytes >= c.Size {
		t.Errorf("%d bytes of %d came again", c.Bytes, c.Size)
	}
}

func TestPackagesThatChangedUpstream(t *testing.T) {
	d := newDebs(t)
	l := d.pin(t, d.resolved("tool"))
	d.list[0].Files = map[string]string{"usr/bin/tool": "another"} // of the same name and version
	d.publish(t, 1)
	cache := openCache(t)
	_, err := Build(t.Context(), BuildRequest{Lock: l, Config: d.config, Output: filepath.Join(t.TempDir(), "x"), Cache: cache, Fetcher: d.client(t, cache), Parallel: 2})
	if err == nil || !strings.Contains(err.Error(), "tool 1:2.0-1 (amd64) of debian-12 has ") || !strings.Contains(err.Error(), "lock again") {
		t.Errorf("%v", err)
	}
}

func TestAdoptPackages(t *testing.T) {
	d := newDebs(t)
	old := d.pin(t, d.resolved("tool"))
	change := func(f func(*manifest.PackageSet)) *manifest.Lock {
		l := d.resolved("tool")
		f(l.Artifacts[0].Packages)
		return l
	}
	for name, c := range map[string]struct {
		resolved *manifest.Lock
		want     []string
	}{
		"the same": {d.resolved("tool"), nil},
		"more":     {change(func(s *manifest.PackageSet) { s.Want = []string{"a | b", "tool"} }), []string{"packages/debian-12/12/linux/amd64: also installs a | b"}},
		"other":    {change(func(s *manifest.PackageSet) { s.Want = []string{"a"} }), []string{"packages/debian-12/12/linux/amd64: also installs a, and no longer installs tool"}},
		"sources":  {change(func(s *manifest.PackageSet) { s.Sources = nil }), []string{"packages/debian-12/12/linux/amd64: repositories deb https://deb.example/debian bookworm main are now nothing"}},
		"keys":     {change(func(s *manifest.PackageSet) { s.Keys = []string{"a", "b"} }), []string{"packages/debian-12/12/linux/amd64: keys key.asc are now a, b"}},
		"format":   {change(func(s *manifest.PackageSet) { s.Format = manifest.RPM }), []string{"packages/debian-12/12/linux/amd64: format deb is now rpm"}},
	} {
		l, changes := Adopt(c.resolved, old)
		var got []string
		for _, x := range changes {
			got = append(got, x.String())
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s, -want +got:\n%s", name, d)
		}
		if len(c.want) == 0 && l != old || len(c.want) > 0 && (pinnedArtifact(l.Artifacts[0]) || !pinnedArtifact(l.Artifacts[1])) {
			t.Errorf("%s: what is pinned is not what still answers", name)
		}
	}

	// What is asked anew and has the same packages is the same lock, at whatever date.
	d.publish(t, 1)
	if l, changes := Adopt(d.pin(t, d.resolved("tool")), old); len(changes) != 0 || l != old {
		t.Errorf("a younger release of the same packages: %v", changes)
	}
	d.list[0].Version, d.list[0].Fields, d.list[1].Fields = "1:2.0-2", []string{"Depends: more, libtool"}, []string{"Depends: libtool"}
	d.list[3].Files = map[string]string{"etc/x": "y"}
	d.publish(t, 2)
	_, changes := Adopt(d.pin(t, d.resolved("tool")), old)
	want := []Change{
		{"packages/debian-12/12/linux/amd64", "tool 1:2.0-1 is now 1:2.0-2; also contains more 1, and no longer contains words 3"},
		{"packages/debian-12/12/linux/arm64", "libtool 5 has different content; tool 1:2.0-1 has different content; no longer contains words 3"},
	}
	if d := cmp.Diff(want, changes); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestComparePackages(t *testing.T) {
	d := newDebs(t)
	from := d.pin(t, d.resolved("tool"))
	d.list[0].Version, d.list[0].Fields = "1:2.0-2", []string{"Depends: more, libtool"}
	d.publish(t, 1)
	to := d.pin(t, d.resolved("tool"))
	text := func(c Diff) []string {
		var got []string
		for _, x := range c.Added {
			got = append(got, "+ "+x.String())
		}
		for _, x := range c.Removed {
			got = append(got, "- "+x.String())
		}
		for _, x := range c.Changed {
			got = append(got, "~ "+x.From.String()+" > "+x.To.Version)
		}
		return got
	}
	diff := Compare(&Side{Lock: from}, &Side{Lock: to})
	want := []string{
		"+ packages more 1 linux/amd64/debian-12",
		"- packages words 3 linux/amd64/debian-12",
		"~ packages debian-12 12 linux/amd64/debian-12 > 12",
		"~ packages debian-12 12 linux/arm64/debian-12 > 12", // the date of what was read
		"~ packages tool 1:2.0-1 linux/amd64/debian-12 > 1:2.0-2",
	}
	if x := cmp.Diff(want, text(diff)); x != "" || diff.Same != 4 {
		t.Errorf("%d the same, -want +got:\n%s", diff.Same, x)
	}
	// A repository that only one side has is one line.
	to.Artifacts = to.Artifacts[:1]
	diff = Compare(&Side{Lock: from}, &Side{Lock: to})
	if !slices.Contains(text(diff), "- packages debian-12 12 linux/arm64/debian-12") || len(diff.Removed) != 2 || diff.Removed[0].Size != from.Artifacts[1].Size {
		t.Errorf("%q", text(diff))
	}
}

// Who asks a server for packages does so once for what two architectures share.
func TestSharedPackagesComeOnce(t *testing.T) {
	d := newDebs(t)
	l := d.pin(t, d.resolved("tool"))
	d.server.Forget()
	d.build(t, l, openCache(t), 8, nil)
	for at, c := range d.server.Counts() {
		if c.Requests != 1 || !strings.Contains(at, "/pool/") {
			t.Errorf("%s was asked for %d times", at, c.Requests)
		}
	}
}

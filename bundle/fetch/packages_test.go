package fetch

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
	internet "github.com/mensylisir/kubexm/testdata/upstream"
)

// debs is an archive of packages at upstream.test/debian, with its key.
type debs struct {
	*upstream
	dir    string // what is served
	base   string // the config's folder
	signer *internet.Signer
	list   []internet.Deb
}

func newDebs(t *testing.T) *debs {
	t.Helper()
	d := &debs{dir: t.TempDir(), base: t.TempDir(), list: []internet.Deb{
		{Name: "tool", Version: "1:2.0-1", Arch: "amd64", Fields: []string{"Depends: words, libtool"}, Files: map[string]string{"usr/bin/tool": strings.Repeat("#!/bin/sh\n", 20_000)}},
		{Name: "tool", Version: "1:2.0-1", Arch: "arm64", Fields: []string{"Depends: words, libtool"}},
		{Name: "libtool", Version: "5", Arch: "amd64"}, {Name: "libtool", Version: "5", Arch: "arm64"},
		{Name: "words", Version: "3"},
	}}
	var err error
	if d.signer, err = internet.NewSigner(time.Now().AddDate(-1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	key, err := d.signer.Public()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(d.base, "key.asc"), key)
	d.publish(t)
	d.upstream = serve(t, d.serve)
	return d
}

// publish writes the archive as it is now.
func (d *debs) publish(t *testing.T) {
	t.Helper()
	if err := d.signer.WriteApt(d.dir, internet.Suite{Codename: "bookworm", Version: "12", Date: time.Now().Add(-time.Minute)}, d.list...); err != nil {
		t.Fatal(err)
	}
}

// serve answers as a mirror does, with a tag for each content.
func (d *debs) serve(w http.ResponseWriter, r *http.Request) {
	b, err := os.ReadFile(filepath.Join(d.dir, strings.TrimPrefix(r.URL.Path, "/debian")))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	served(b, `"`+sum(b)+`"`)(w, r)
}

// wanted is what a config resolves to.
func (d *debs) wanted(arch string, sources ...string) manifest.Artifact {
	if len(sources) == 0 {
		sources = []string{"deb https://upstream.test/debian bookworm main"}
	}
	return manifest.Artifact{
		ID: "packages/debian-12/12/linux/" + arch, Kind: manifest.Packages, Name: "debian-12", Version: "12",
		Platform: manifest.Platform{OS: "linux", Arch: arch, Distribution: "debian", Release: "12"}, Sets: []string{"v1.32.2"},
		Packages: &manifest.PackageSet{Format: manifest.Deb, Want: []string{"tool"}, Sources: sources, Keys: []string{"key.asc"}},
	}
}

// options returns the options of a client that uses only d.
func (d *debs) options(t *testing.T) Options {
	t.Helper()
	o := options(t, d.upstream)
	o.Base, o.Etc = d.base, t.TempDir()
	return o
}

func (d *debs) pin(t *testing.T, o Options, a manifest.Artifact) manifest.Artifact {
	t.Helper()
	pinned, err := client(t, o).PinArtifact(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return pinned
}

func TestPackagesArePinnedAndFetched(t *testing.T) {
	d := newDebs(t)
	o := d.options(t)
	var notes []string
	o.Note = func(s string) { notes = append(notes, s) }
	p := &started{}
	o.Progress = p
	a := d.pin(t, o, d.wanted("amd64"))
	var paths []string
	for _, m := range a.Members {
		paths = append(paths, m.Path)
		if m.Package != "" && !strings.HasPrefix(m.Address, "https://upstream.test/debian/pool/") {
			t.Errorf("%s is from %s", m.Package, m.Address)
		}
	}
	if d := cmp.Diff([]string{"Packages", "Release", "pool/libtool_5_amd64.deb", "pool/tool_2.0-1_amd64.deb", "pool/words_3_all.deb"}, paths); d != "" {
		t.Errorf("members, -want +got:\n%s", d)
	}
	if a.Trust != manifest.FromPublished {
		t.Errorf("vouched for by %s", a.Trust)
	}
	if want := "reading repositories of debian-12 for linux/amd64"; !slices.Contains(p.names, want) {
		t.Errorf("progress told of %q, want also %q", p.names, want)
	}
	if err := client(t, o).FetchArtifact(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	for _, m := range a.Members {
		if !o.Cache.Has(m.SHA256, m.Size) {
			t.Errorf("%s is not in the cache", m.Path)
		}
	}
	mustBeClean(t, o.Cache)

	// In a second run a look whether the release stands is enough.
	asked := d.asked("")
	if again := d.pin(t, o, d.wanted("amd64")); !cmp.Equal(a, again) {
		t.Errorf("an unchanged archive gives another pin:\n%s", cmp.Diff(a, again))
	}
	if n := d.asked(""); n != asked+1 || d.request(asked).Method != http.MethodHead {
		t.Errorf("asked %d times again, want one HEAD", n-asked)
	}
	// And within one run, for two architectures, the release is read once.
	asked = d.asked("")
	c := client(t, o)
	for _, arch := range []string{"amd64", "arm64"} {
		if _, err := c.PinArtifact(t.Context(), d.wanted(arch)); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.asked(""); n != asked+2 { // a HEAD for InRelease, a GET for arm64's index
		t.Errorf("asked %d times, want 2", n-asked)
	}
	if len(notes) > 0 {
		t.Errorf("notes: %q", notes)
	}
	// A new version is seen.
	d.list[4].Version = "4"
	d.publish(t)
	if a = d.pin(t, o, d.wanted("amd64")); !slices.ContainsFunc(a.Members, func(m manifest.Member) bool { return m.Package == "words 4 (all)" }) {
		t.Errorf("the new version is not pinned: %v", a.Members)
	}
}

// started remembers the names of transfers.
type started struct {
	mu    sync.Mutex
	names []string
}

func (s *started) Start(name string, _ int64) Transfer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, name)
	return silent{}
}

// What a disk spoils of the metadata that was kept is found and fetched anew.
func TestCachedMetadataIsNotTrusted(t *testing.T) {
	d := newDebs(t)
	o := d.options(t)
	want := d.pin(t, o, d.wanted("amd64"))
	spoiled := 0
	if err := filepath.WalkDir(filepath.Join(o.Cache.Dir(), "sha256"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		spoiled++
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b[len(b)/2] ^= 1
		return os.WriteFile(path, b, 0o644)
	}); err != nil || spoiled == 0 {
		t.Fatalf("%d spoiled, %v", spoiled, err)
	}
	var err error
	if o.Cache, err = OpenCache(o.Cache.Dir()); err != nil {
		t.Fatal(err)
	}
	if got := d.pin(t, o, d.wanted("amd64")); !cmp.Equal(want, got) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestPackagesFromAFolder(t *testing.T) {
	d := newDebs(t)
	o := d.options(t)
	a := d.pin(t, o, d.wanted("amd64", "deb file:"+d.dir+" bookworm main"))
	if err := client(t, o).FetchArtifact(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if n := d.asked(""); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
	deb := filepath.Join(d.dir, "pool/main/w/words/words_3_all.deb")
	for name, spoil := range map[string]func(b []byte) []byte{
		"other": func(b []byte) []byte { b[100] ^= 1; return b }, "short": func(b []byte) []byte { return b[:100] }, "long": func(b []byte) []byte { return append(b, 1) },
	} {
		b, err := os.ReadFile(deb)
		if err != nil {
			t.Fatal(err)
		}
		write(t, deb, spoil(slices.Clone(b)))
		fresh := d.options(t)
		err = client(t, fresh).FetchArtifact(t.Context(), a)
		if (!is[*DigestError](err) && !is[*SizeError](err)) || !strings.HasPrefix(err.Error(), "words 3 (all) of debian-12 has ") {
			t.Errorf("%s: %v", name, err)
		}
		write(t, deb, b)
	}
	if err := os.Remove(deb); err != nil {
		t.Fatal(err)
	}
	if err := client(t, d.options(t)).FetchArtifact(t.Context(), a); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a package that is gone: %v", err)
	}
}

// member finds the package of a name.
func member(t *testing.T, a manifest.Artifact, name string) manifest.Member {
	t.Helper()
	for _, m := range a.Members {
		if strings.HasPrefix(m.Package, name+" ") {
			return m
		}
	}
	t.Fatalf("no %s in %v", name, a.Members)
	return manifest.Member{}
}

func TestPackagesThatAreNotWhatWasPinned(t *testing.T) {
	d := newDebs(t)
	a := d.pin(t, d.options(t), d.wanted("amd64"))
	m := member(t, a, "tool")
	at := filepath.Join(d.dir, "pool/main/t/tool/tool_2.0-1_amd64.deb")
	good, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	other := slices.Clone(good)
	other[len(other)/2] ^= 1
	for name, c := range map[string]struct {
		content []byte // nil: there is nothing
		wrong   func(error) bool
		want    string
	}{
		"changed":   {other, is[*DigestError], "upstream changed it, or a mirror serves another file"},
		"truncated": {good[:len(good)/2], is[*SizeError], "then lock again, or fix the mirror"},
		"longer":    {append(slices.Clone(good), 1), is[*SizeError], "expected"},
		"empty":     {[]byte{}, is[*SizeError], "has 0 bytes"},
		"gone":      {nil, is[*StatusError], "; a distribution keeps only the newest versions: lock again with `kubexm bundle lock --update`"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.content == nil {
				if err := os.Remove(at); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, at, c.content)
			}
			o := d.options(t)
			err := client(t, o).FetchMember(t.Context(), a, m)
			if !c.wrong(err) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "tool 1:2.0-1 (amd64) of debian-12") {
				t.Errorf("%v", err)
			}
			if o.Cache.Has(m.SHA256, m.Size) {
				t.Error("it is in the cache")
			}
		})
	}
}

// A package whose download broke off, in this run or in one that was killed, goes on.
func TestInterruptedPackageIsContinued(t *testing.T) {
	d := newDebs(t)
	a := d.pin(t, d.options(t), d.wanted("amd64"))
	m := member(t, a, "tool")
	o := d.options(t)
	whole, err := os.ReadFile(filepath.Join(d.dir, "pool/main/t/tool/tool_2.0-1_amd64.deb"))
	if err != nil {
		t.Fatal(err)
	}
	u := serve(t, inSequence(half(whole, `"1"`), served(whole, `"1"`)))
	o.Sources = options(t, u).Sources
	if err := client(t, o).FetchMember(t.Context(), a, m); err != nil {
		t.Fatal(err)
	}
	mustHold(t, o.Cache, whole)
	if got := u.request(1).Header.Get("Range"); !strings.HasPrefix(got, "bytes=") || u.bytesSent() >= int64(len(whole))*3/2 {
		t.Errorf("the second request has range %q, %d bytes were sent for %d", got, u.bytesSent(), len(whole))
	}
}

// The metadata is the lock's: nothing is asked for it, and a changed record shows.
func TestMetadataIsWrittenFromTheLock(t *testing.T) {
	d := newDebs(t)
	a := d.pin(t, d.options(t), d.wanted("amd64"))
	o := d.options(t)
	asked := d.asked("")
	c := client(t, o)
	for _, m := range a.Members {
		if m.Package == "" {
			if err := c.FetchMember(t.Context(), a, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if d.asked("") != asked {
		t.Error("metadata was downloaded")
	}
	index := a.Members[slices.IndexFunc(a.Members, func(m manifest.Member) bool { return m.Path == "Packages" })]
	for name, change := range map[string]func(*manifest.Artifact){
		"record": func(a *manifest.Artifact) {
			a.Members[2].Record = "Section: other\n" + a.Members[2].Record
		},
		"date": func(a *manifest.Artifact) { s := *a.Packages; s.Date = s.Date.Add(time.Hour); a.Packages = &s },
		"unknown": func(a *manifest.Artifact) {
			a.Members = append(a.Members, manifest.Member{Path: "x", Name: "x", SHA256: sum(nil)})
		},
	} {
		b := a
		b.Members = slices.Clone(a.Members)
		change(&b)
		err := client(t, d.options(t)).FetchMember(t.Context(), b, index)
		if !is[*MetadataError](err) || !strings.Contains(err.Error(), "kubexm bundle lock --update") {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.Members[2].SHA256 = ""
	if err := client(t, d.options(t)).FetchArtifact(t.Context(), a); err == nil || !strings.Contains(err.Error(), "not pinned") {
		t.Errorf("an unpinned package: %v", err)
	}
}

// opened opens an address as a reader of repositories does.
func opened(t *testing.T, o Options, address string) (string, error) {
	t.Helper()
	w := &packageWeb{client: client(t, o)}
	r, err := w.Open(t.Context(), address)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), nil
}

func TestAbsentFilesDoNotExist(t *testing.T) {
	code := http.StatusOK
	u := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) })
	for c, absent := range map[int]bool{404: true, 410: true, 403: false, 500: false, 401: false} {
		code = c
		_, err := opened(t, options(t, u), "http://upstream.test/x")
		if err == nil || errors.Is(err, fs.ErrNotExist) != absent || !is[*StatusError](err) {
			t.Errorf("%d: %v", c, err)
		}
	}
	for _, address := range []string{"file:///none/at/all", "file:/none/at/all"} {
		if _, err := opened(t, options(t, u), address); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"file:" + t.TempDir(), "ftp://other.test/x", "http://", "http://a b:secret@c/\x01"} {
		if _, err := opened(t, options(t, u), address); err == nil || errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A password in an address goes to its host, and nowhere else.
func TestPasswordsOfAddresses(t *testing.T) {
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the login went to where the address leads")
		}
		_, _ = w.Write([]byte("text"))
	})
	fails := false
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case fails:
			w.WriteHeader(http.StatusForbidden)
		case user != "me" || password != "se:cret":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			http.Redirect(w, r, other.URL+"/there", http.StatusFound)
		}
	})
	o := options(t, u)
	o.Sources = manifest.Sources{}
	address := strings.Replace(u.URL, "http://", "http://me:se%3Acret@", 1) + "/x"
	if text, err := opened(t, o, address); err != nil || text != "text" {
		t.Errorf("%q, %v", text, err)
	}
	fails = true
	if _, err := opened(t, o, address+"y"); err == nil || strings.Contains(err.Error(), "cret") {
		t.Errorf("%v", err)
	}
	err := filepath.WalkDir(o.Cache.Dir(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "cret") {
			t.Errorf("%s holds the password", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	// The mirror in its place does not get it.
	o.Sources = options(t, other).Sources
	if _, err := opened(t, o, "http://me:secret@upstream.test/z"); err != nil {
		t.Error(err)
	}
	a := manifest.Artifact{Packages: &manifest.PackageSet{Sources: []string{"deb [arch=amd64] https://me:secret@upstream.test/debian bookworm main"}}}
	if err := withoutLogins(a); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

// What came by https does not lead to plain http, and metadata without end ends.
func TestBoundsOfMetadata(t *testing.T) {
	plain := serve(t, served([]byte("text"), ""))
	u := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL, http.StatusFound)
	}))
	t.Cleanup(u.Close)
	o := options(t, plain)
	o.Sources = manifest.Sources{}
	c := client(t, o)
	c.base.inner = u.Client().Transport
	if _, err := (&packageWeb{client: c}).Open(t.Context(), u.URL); !is[*PlainHTTPError](err) {
		t.Errorf("%v", err)
	}
	c = client(t, o)
	c.limits.metadata = 3
	if _, err := (&packageWeb{client: c}).Open(t.Context(), plain.URL); err == nil || !strings.Contains(err.Error(), "more than 3 bytes") {
		t.Errorf("%v", err)
	}
}

// An rpm repository without a signature does not come by plain http.
func TestUnsignedPackagesComeByHTTPS(t *testing.T) {
	dir := t.TempDir()
	primary := []byte(`<?xml version="1.0" encoding="UTF-8"?>
<metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm" packages="1">
<package type="rpm"><name>tool</name><arch>x86_64</arch><version epoch="0" ver="2.0" rel="1"/>
<checksum type="sha256" pkgid="YES">` + sum([]byte("rpm")) + `</checksum><summary>s</summary><description>d</description>
<time file="1" build="1"/><size package="3" installed="3" archive="3"/><location href="Packages/tool-2.0-1.x86_64.rpm"/>
<format><rpm:license>MIT</rpm:license><rpm:sourcerpm>tool-2.0-1.src.rpm</rpm:sourcerpm><rpm:header-range start="1" end="2"/>
<rpm:provides><rpm:entry name="tool" flags="EQ" epoch="0" ver="2.0" rel="1"/></rpm:provides></format></package>
</metadata>
`)
	write(t, filepath.Join(dir, "repodata/primary.xml"), primary)
	write(t, filepath.Join(dir, "repodata/repomd.xml"), []byte(`<?xml version="1.0" encoding="UTF-8"?>
<repomd xmlns="http://linux.duke.edu/metadata/repo"><revision>1</revision><data type="primary"><checksum type="sha256">`+sum(primary)+`</checksum>
<location href="repodata/primary.xml"/><timestamp>1</timestamp><size>`+itoa(len(primary))+`</size></data></repomd>
`))
	u := serve(t, http.FileServer(http.Dir(dir)).ServeHTTP)
	repo := func(address string) Options {
		o := options(t, u)
		o.Base = t.TempDir()
		write(t, filepath.Join(o.Base, "own.repo"), []byte("[own]\nname=own\nbaseurl="+address+"\ngpgcheck=0\nenabled=1\n"))
		return o
	}
	a := manifest.Artifact{
		ID: "packages/rocky-9/9/linux/amd64", Kind: manifest.Packages, Name: "rocky-9", Version: "9",
		Platform: manifest.Platform{OS: "linux", Arch: "amd64", Distribution: "rocky", Release: "9"},
		Packages: &manifest.PackageSet{Format: manifest.RPM, Want: []string{"tool"}, Sources: []string{"own.repo"}},
	}
	o := repo(u.URL)
	o.Sources = manifest.Sources{}
	_, err := client(t, o).PinArtifact(t.Context(), a)
	if e, ok := errors.AsType[*UnverifiedError](err); !ok || !slices.Equal(e.Addresses, []string{u.Listener.Addr().String()}) {
		t.Errorf("%v", err)
	}
	// With leave it does.
	pinned, err := client(t, repo("https://upstream.test")).PinArtifact(t.Context(), a)
	if err != nil || pinned.Trust != manifest.FromContent {
		t.Errorf("%s, %v", pinned.Trust, err)
	}
}

func TestVisitRecordsAreUntrusted(t *testing.T) {
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	key := sum([]byte("x"))
	good := visit{ETag: `"1"`, SHA256: key}
	if err := c.writeVisit(key, good); err != nil || c.readVisit(key) != good {
		t.Errorf("%v, %v", c.readVisit(key), err)
	}
	for _, text := range []string{"", "{", `{"etag":"1","sha256":"../../etc"}`, "[]", strings.Repeat(" ", visitBytes) + "{}"} {
		write(t, c.visitPath(key), []byte(text))
		if v := c.readVisit(key); v != (visit{}) {
			t.Errorf("%.20q gives %v", text, v)
		}
	}
	old := time.Now().Add(-sweepVisits - time.Hour)
	if err := os.Chtimes(c.visitPath(key), old, old); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCache(c.Dir()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.visitPath(key)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an old record stays: %v", err)
	}
}

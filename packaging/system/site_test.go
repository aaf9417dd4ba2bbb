package system

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/upstream"
)

// then is when everything here takes place.
var then = time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)

// folders is a Web of folders, by the address that each lies at.
type folders map[string]string

func (f folders) Open(_ context.Context, address string) (io.ReadCloser, error) {
	plain, err := url.PathUnescape(address)
	if err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(plain, "file://"); ok {
		return os.Open(path)
	}
	for at, dir := range f {
		if rest, ok := strings.CutPrefix(plain, at+"/"); ok {
			return os.Open(filepath.Join(dir, rest))
		}
	}
	return nil, fmt.Errorf("%s: %w", address, os.ErrNotExist)
}

// debs is a small distribution: a base of two, of which one goes with the other, and
// what needs them.
var debs = []upstream.Deb{
	{Name: "libc6", Version: "2.36-9", Arch: "amd64", Fields: []string{"Priority: required"}},
	{Name: "base-files", Version: "12-1", Fields: []string{"Essential: yes", "Depends: libc6 (= 2.36-9)"}},
	{Name: "libudev1", Version: "252-1", Arch: "amd64", Fields: []string{"Priority: required", "Depends: libc6 (>= 2.30)"}},
	{Name: "socat", Version: "1:1.7.4-2", Arch: "amd64", Fields: []string{"Section: net", "Homepage: http://example.com", "Depends: libc6 (>= 2.36), libwrap0 | nothing", "Recommends: chrony"}},
	{Name: "libwrap0", Version: "7.6.q-32", Arch: "amd64", Fields: []string{"Depends: libc6 (>= 2.36)"}},
	{Name: "udev", Version: "252-1", Arch: "amd64", Fields: []string{"Depends: libudev1 (= 252-1)"}},
	{Name: "chrony", Version: "4.3-2", Arch: "amd64", Fields: []string{"Conflicts: time-daemon", "Provides: time-daemon"}},
	{Name: "ntpsec", Version: "1.2.2", Arch: "amd64", Fields: []string{"Conflicts: time-daemon", "Provides: time-daemon"}},
	{Name: "broken", Version: "1", Arch: "amd64", Fields: []string{"Depends: libnowhere (>= 2)"}},
	{Name: "tools", Version: "1", Arch: "amd64", Fields: []string{"Depends: broken"}},
}

// site is a signed repository at deb.test, and a folder for a config.
type site struct {
	folders
	signer *upstream.Signer
	dir    string // of the repository
	base   string // of the config, with key.asc in it
	etc    string // of the machine
}

func newSite(t *testing.T) *site {
	t.Helper()
	signer, err := upstream.NewSigner(then.AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{signer: signer, dir: t.TempDir(), base: t.TempDir(), etc: t.TempDir()}
	s.folders = folders{"https://deb.test/debian": s.dir}
	s.publish(t, upstream.Suite{Codename: "bookworm", Version: "12.9", Date: then.Add(-time.Hour), ValidUntil: then.Add(time.Hour)}, debs...)
	key, err := signer.Public()
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, "key.asc", string(key))
	return s
}

func (s *site) publish(t *testing.T, suite upstream.Suite, packages ...upstream.Deb) {
	t.Helper()
	if err := s.signer.WriteApt(s.dir, suite, packages...); err != nil {
		t.Fatal(err)
	}
}

// put writes a file beside the config.
func (s *site) put(t *testing.T, name, content string) {
	t.Helper()
	write(t, filepath.Join(s.base, name), content)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *site) options() Options { return Options{Base: s.base, Etc: s.etc, Now: then} }

var bookworm = manifest.Platform{OS: "linux", Arch: "amd64", Distribution: "debian", Release: "12"}

const line = "deb https://deb.test/debian bookworm main"

// ask is what a config wants of packages, from the sources that it names.
func ask(sources []string, names ...string) manifest.Artifact {
	a := wanted(bookworm, names...)
	a.Packages.Sources, a.Packages.Keys = sources, []string{"key.asc"}
	return a
}

// same wants two artifacts to be equal.
func same(t *testing.T, want, have manifest.Artifact) {
	t.Helper()
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
}

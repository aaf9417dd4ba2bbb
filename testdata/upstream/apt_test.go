package upstream

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/apt"
)

// web opens what a server has under its hosts' names.
type web string

func (w web) Open(ctx context.Context, url string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Replace(url, "https://", string(w)+"/", 1), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, os.ErrNotExist
	}
	return resp.Body, nil
}

// What a Signer writes and a Folder serves is a repository as apt knows them.
func TestFolderOfPackages(t *testing.T) {
	then := time.Date(2026, 5, 20, 12, 0, 0, 0, time.UTC)
	signer, err := NewSigner(then.AddDate(-1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	suite := Suite{Codename: "bookworm", Version: "12", Date: then}
	if err := signer.WriteApt(dir, suite,
		Deb{Name: "tool", Version: "1:2.0-1", Arch: "amd64", Fields: []string{"Depends: words"}, Files: map[string]string{"usr/bin/tool": "#!/bin/sh\necho tool\n"}},
		Deb{Name: "words", Version: "3"},
	); err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), Sample(), Options{Scale: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Folder("deb.example/debian", dir); err != nil {
		t.Fatal(err)
	}
	if hosts := strings.Join(s.Hosts(), " "); !strings.Contains(hosts, "deb.example ") {
		t.Errorf("hosts are %s", hosts)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	key, err := signer.Public()
	if err != nil {
		t.Fatal(err)
	}
	a, err := apt.Open(t.Context(), web(server.URL), apt.Request{
		Sources:      []apt.Source{{URI: "https://deb.example/debian", Suite: "bookworm", Components: []string{"main"}, SignedBy: apt.Keys{Inline: string(key)}}},
		Arch:         "amd64",
		Distribution: "debian", Release: "12", Keyrings: []string{}, Now: then.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	found := a.Universe.Find(packaging.Relation{Name: "tool"})
	if len(found) != 1 || found[0].Version != "1:2.0-1" || len(a.Universe.Find(packaging.Relation{Name: "words"})) != 1 {
		t.Fatalf("the repository offers %v", found)
	}
	r, err := web(server.URL).Open(t.Context(), a.Address(found[0]))
	if err != nil {
		t.Fatalf("%s: %v", a.Address(found[0]), err)
	}
	defer r.Close()
	deb := filepath.Join(t.TempDir(), "tool.deb")
	f, err := os.Create(deb)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := io.Copy(f, r); err != nil || n != found[0].Size {
		t.Errorf("%d bytes, %v; the index says %d", n, err, found[0].Size)
	}
	for _, bad := range []string{"/deb.example/debian/dists", "/deb.example/debian/../secret", "/deb.example/none", "/deb.example/debian/"} {
		if r, err := web(server.URL).Open(t.Context(), server.URL+bad); err == nil {
			t.Errorf("%s is served", bad)
			_ = r.Close()
		}
	}
	tool, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Skip("no dpkg-deb here to look at the package")
	}
	out, err := exec.CommandContext(t.Context(), tool, "--contents", deb).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "-rwxr-xr-x 0/0") || !strings.Contains(string(out), "./usr/bin/tool") {
		t.Errorf("dpkg-deb: %v\n%s", err, out)
	}
	out, err = exec.CommandContext(t.Context(), tool, "--field", deb, "Version", "Depends").CombinedOutput()
	if err != nil || string(out) != "Version: 1:2.0-1\nDepends: words\n" {
		t.Errorf("dpkg-deb: %v\n%s", err, out)
	}
}

func TestFolderWantsAHost(t *testing.T) {
	s, err := New(t.Context(), Sample(), Options{Scale: 0.001})
	if err != nil {
		t.Fatal(err)
	}
	for at, dir := range map[string]string{"https://deb.example": t.TempDir(), "": t.TempDir(), "deb.example": "/none/at/all"} {
		if err := s.Folder(at, dir); err == nil {
			t.Errorf("%q in %s is taken", at, dir)
		}
	}
}

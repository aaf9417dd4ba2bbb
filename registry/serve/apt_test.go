package serve

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/apt"
	"github.com/mensylisir/kubexm/registry/registrytest"
	"github.com/mensylisir/kubexm/testdata/upstream"
)

// apt-get reads a served repository of packages, and downloads from it: with a key that
// signs it, and without one if it is configured to trust it. Without either it refuses.
func TestAptReadsPackages(t *testing.T) {
	for name, c := range map[string]struct {
		signed bool
		option string // %s is the file with the public key
		reads  bool
	}{
		"signed": {true, "signed-by=%s", true}, "trusted": {false, "trusted=yes", true}, "unsigned": {false, "signed-by=%s", false}, "another's": {true, "signed-by=%s.other.asc", false},
	} {
		t.Run(name, func(t *testing.T) { aptReads(t, c.signed, c.option, c.reads) })
	}
}

func aptReads(t *testing.T, signed bool, option string, reads bool) {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("there is no apt-get here")
	}
	deb := upstream.Deb{Name: "kubexm-served", Version: "1.0-1", Arch: "amd64", Files: map[string]string{"usr/share/x": "served"}}
	content, err := deb.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	m := manifest.Member{
		Path: "pool/" + deb.File(), Name: "pool/" + deb.File(), Package: "kubexm-served 1.0-1 (amd64)", Size: int64(len(content)),
		SHA256: digest.FromBytes(content).Encoded(), Record: "Package: kubexm-served\nVersion: 1.0-1\nArchitecture: amd64\nDescription: x\n",
	}
	metadata, err := apt.Write([]manifest.Member{m}, apt.About{Arch: "amd64", Date: time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{m.Path: string(content)}
	for _, f := range metadata {
		files[f.Path] = string(f.Content)
	}
	w := registrytest.NewContent("")
	w.Debs(files)
	key, public := signingKey(t)
	_, other := signingKey(t)
	o := Options{Key: key}
	if !signed {
		o.Key = nil
	}
	s := httptest.NewServer(handler(t, open(t, w), o))
	t.Cleanup(s.Close)

	dir := t.TempDir()
	if strings.Contains(option, "%s") {
		option = fmt.Sprintf(option, filepath.Join(dir, "site.asc"))
	}
	options := []string{"-q"}
	for _, o := range []string{"Dir::Etc=" + dir + "/etc", "Dir::State=" + dir + "/state", "Dir::State::status=" + dir + "/status", "Dir::Cache=" + dir + "/cache",
		"Acquire::http::Proxy=DIRECT", "Debug::NoLocking=true", "APT::Sandbox::User=", "APT::Architecture=amd64", "APT::Architectures::=amd64"} {
		options = append(options, "-o", o)
	}
	for _, d := range []string{"etc/apt.conf.d", "etc/preferences.d", "etc/sources.list.d", "state/lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"status": "", "etc/sources.list": fmt.Sprintf("deb [%s] %s/packages/debian-12/amd64 ./\n", option, s.URL), "site.asc": string(public), "site.asc.other.asc": string(other)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"update"}, {"-y", "--download-only", "install", "kubexm-served"}} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, "apt-get", append(options, args...)...).CombinedOutput()
		cancel()
		if !reads {
			if err == nil || !strings.Contains(string(out), "not signed") {
				t.Fatalf("apt-get takes it: %v: %s", err, out)
			}
			return
		}
		if err != nil || strings.Contains(string(out), "W:") {
			t.Fatalf("apt-get %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	if got, err := os.ReadFile(filepath.Join(dir, "cache/archives", deb.File())); err != nil || string(got) != string(content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

package system

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/apt"
)

// simulated gives what apt-get would install of a repository in a root of an
// architecture, of which there are no programs here, that has just some packages.
func simulated(t *testing.T, a manifest.Artifact, there []*packaging.Package) []string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"etc/apt.conf.d", "etc/preferences.d", "etc/sources.list.d", "state/lists/partial", "cache/archives/partial", "repo"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var status bytes.Buffer
	for _, p := range there {
		name, rest, _ := bytes.Cut(p.Record, []byte("\n"))
		status.WriteString(string(name) + "\nStatus: install ok installed\n" + string(rest) + "\n")
	}
	files := []File{{Path: "status", Content: status.Bytes()}, {Path: "etc/sources.list", Content: []byte("deb [trusted=yes] file:" + dir + "/repo ./\n")}}
	metadata, err := Metadata(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range metadata {
		files = append(files, File{Path: "repo/" + f.Path, Content: f.Content})
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Path), f.Content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	arch := apt.Arch(a.Platform.Arch)
	options := []string{}
	for _, o := range []string{"Dir::Etc=" + dir + "/etc", "Dir::State=" + dir + "/state", "Dir::State::status=" + dir + "/status", "Dir::Cache=" + dir + "/cache",
		"APT::Architecture=" + arch, "APT::Architectures::=" + arch, "APT::Install-Recommends=false", "APT::Sandbox::User=", "Debug::NoLocking=true",
		"Acquire::Check-Date=false", "APT::Get::Show-User-Simulation-Note=false"} {
		options = append(options, "-o", o)
	}
	command(t, slices.Concat([]string{"apt-get"}, options, []string{"update"})...)
	var out []string
	for line := range strings.Lines(command(t, slices.Concat([]string{"apt-get"}, options, []string{"-s", "install"}, a.Packages.Want)...)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "Inst" {
			out = append(out, f[1])
		} else if len(f) > 0 && f[0] == "Remv" {
			t.Error(line)
		}
	}
	slices.Sort(out)
	return out
}

// TestSimulateReal has apt-get say what it would install of the default list's
// repository where only the base is: all that was found to be needed, and nothing else.
func TestSimulateReal(t *testing.T) {
	web, a, o := real(t)
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("there is no apt-get here")
	}
	pinned, _, err := Pin(t.Context(), web, a, o)
	if err != nil {
		t.Fatal(err)
	}
	sources, problems := apt.ReadFolder(filepath.Join(o.Etc, "apt"))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	archive, err := apt.Open(t.Context(), web, apt.Request{Sources: sources, Arch: apt.Arch(a.Platform.Arch), Distribution: "debian", Release: a.Platform.Release})
	if err != nil {
		t.Fatal(err)
	}
	base, err := archive.Universe.BaseClosure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Fill(base); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range pinned.Members {
		name, _, _ := strings.Cut(m.Package, " ")
		if name != "" && !slices.ContainsFunc(base, func(p *packaging.Package) bool { return p.Name == name }) {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	if d := cmp.Diff(want, simulated(t, pinned, base)); d != "" {
		t.Error(d)
	}
	t.Logf("%d packages on %d of %s", len(want), len(base), a.Platform)
}

package system

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
)

// debian is a clean minimal installation, entered without a network: what runs in it
// has no address, no route and no loopback.
type debian struct{ root string }

// newDebian unpacks a minimal installation of a release, which is kept for the next
// time, as packages are.
func newDebian(t *testing.T, release, kept string) debian {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("entering a root needs root")
	}
	codename := map[string]string{"11": "bullseye", "12": "bookworm", "13": "trixie"}[release]
	archive := filepath.Join(kept, "root-"+codename+".tar")
	if _, err := os.Stat(archive); err != nil {
		sources := filepath.Join(cmp.Or(os.Getenv("KUBEXM_APT_ETC"), "/etc/apt"), "sources.list.d/debian.sources")
		command(t, "mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", codename, archive, sources)
	}
	d := debian{filepath.Join(t.TempDir(), "root")}
	if err := os.Mkdir(d.root, 0o755); err != nil {
		t.Fatal(err)
	}
	command(t, "tar", "-C", d.root, "-xf", archive)
	for _, name := range []string{"etc/apt/sources.list", "etc/apt/sources.list.d", "var/lib/apt/lists"} {
		if err := os.RemoveAll(filepath.Join(d.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	d.write(t, "usr/sbin/policy-rc.d", 0o755, []byte("#!/bin/sh\nexit 101\n")) // no service starts in here
	return d
}

func (d debian) write(t *testing.T, name string, mode os.FileMode, content []byte) {
	t.Helper()
	name = filepath.Join(d.root, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, content, mode); err != nil {
		t.Fatal(err)
	}
}

// run wants a program to end well in the installation.
func (d debian) run(t *testing.T, program ...string) string {
	t.Helper()
	out, err := d.try(t, program...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(program, " "), err, out)
	}
	return out
}

func (d debian) try(t *testing.T, program ...string) (string, error) {
	t.Helper()
	return try(t, append([]string{"unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc=" + d.root + "/proc", "chroot", d.root,
		"/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"}, program...)...)
}

func try(t *testing.T, program ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program[0], program[1:]...).CombinedOutput()
	return string(out), err
}

func command(t *testing.T, program ...string) string {
	t.Helper()
	out, err := try(t, program...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(program, " "), err, out)
	}
	return out
}

// repository writes a pinned artifact into the installation, the packages' files out
// of a folder, and makes it the only source that there is.
func (d debian) repository(t *testing.T, a manifest.Artifact, kept string) {
	t.Helper()
	files, err := Metadata(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		d.write(t, "srv/"+f.Path, 0o644, f.Content)
	}
	for _, m := range a.Members {
		if m.Package == "" {
			continue
		}
		b, err := os.ReadFile(filepath.Join(kept, filepath.Base(m.Path)))
		if err != nil {
			t.Fatal(err)
		}
		d.write(t, "srv/"+m.Path, 0o644, b)
	}
	d.write(t, "etc/apt/sources.list", 0o644, []byte("deb [trusted=yes] file:/srv ./\n"))
	d.run(t, "apt-get", "update")
}

// installed gives what is installed: "name version".
func (d debian) installed(t *testing.T) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(d.run(t, "dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n")) {
		state, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if state != "installed" {
			t.Errorf("%s is %s", rest, state)
		}
		out = append(out, rest)
	}
	return out
}

// archives is the folder for packages' files that KUBEXM_APT_ARCHIVES names.
func archives(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KUBEXM_APT_ARCHIVES")
	if dir == "" {
		t.Skip("set KUBEXM_APT_ARCHIVES to a folder that packages and installations are kept in; apt downloads them into it")
	}
	for _, tool := range []string{"mmdebstrap", "unshare", "apt-get"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s here", tool)
		}
	}
	return dir
}

// download has apt get the files of packages that are not kept yet, and looks at
// their digests.
func download(t *testing.T, a manifest.Artifact, kept string) {
	t.Helper()
	for _, m := range a.Members {
		if m.Package == "" {
			continue
		}
		file := filepath.Join(kept, filepath.Base(m.Path))
		if _, err := os.Stat(file); err != nil {
			command(t, "/usr/lib/apt/apt-helper", "download-file", m.Address, file, "SHA256:"+m.SHA256)
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(b)) != m.Size || fmt.Sprintf("%x", sha256.Sum256(b)) != m.SHA256 {
			t.Fatalf("%s is another file than the one that is pinned", file)
		}
	}
}

// TestInstallReal has apt-get install the default list for real: in a clean minimal
// installation without a network, with the written repository as its only source.
func TestInstallReal(t *testing.T) {
	web, a, o := real(t)
	kept := archives(t)
	pinned, _, err := Pin(t.Context(), web, a, o)
	if err != nil {
		t.Fatal(err)
	}
	download(t, pinned, kept)
	t.Run("up to date", func(t *testing.T) { newDebian(t, a.Platform.Release, kept).install(t, pinned, kept) })
	t.Run("of an earlier patch level", func(t *testing.T) {
		d := newDebian(t, a.Platform.Release, kept)
		d.age(t)
		d.install(t, pinned, kept)
	})
	t.Run("of an earlier patch level, the base left out whole", func(t *testing.T) {
		d := newDebian(t, a.Platform.Release, kept)
		d.age(t)
		less := pinned
		less.Members = slices.DeleteFunc(slices.Clone(pinned.Members), func(m manifest.Member) bool {
			return m.Package == "" || slices.ContainsFunc(d.installed(t), func(x string) bool { return strings.HasPrefix(m.Package, strings.Fields(x)[0]+" ") })
		})
		d.repository(t, less, kept)
		if out, err := d.try(t, append([]string{"apt-get", "install", "--yes", "--no-install-recommends"}, a.Packages.Want...)...); err == nil {
			t.Errorf("what was carried of the base was not needed: %s", lastLines(out, 5))
		}
	})
}

// age has the installation say that every package of it is of an earlier patch level.
func (d debian) age(t *testing.T) {
	t.Helper()
	file := filepath.Join(d.root, "var/lib/dpkg/status")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = regexp.MustCompile(`(?m)^Version: .*$`).ReplaceAll(b, []byte("$0~"))
	needs := regexp.MustCompile(`(?m)^(Pre-)?Depends: .*$`)
	b = needs.ReplaceAllFunc(b, func(line []byte) []byte { return regexp.MustCompile(`\(>?= [^)]+`).ReplaceAll(line, []byte("$0~")) })
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// install has apt-get install all that is wanted, out of the repository alone.
func (d debian) install(t *testing.T, a manifest.Artifact, kept string) {
	t.Helper()
	before := d.installed(t)
	for _, m := range a.Members {
		for _, x := range before {
			if name, version, _ := strings.Cut(x, " "); m.Package != "" && strings.HasPrefix(m.Package, name+" ") {
				t.Logf("of the base, and carried: %s, %d bytes; there is %s", m.Package, m.Size, version)
			}
		}
	}
	d.repository(t, a, kept)
	out := d.run(t, append([]string{"apt-get", "install", "--yes", "--no-install-recommends"}, a.Packages.Want...)...)
	after := d.installed(t)
	var came []string
	for _, x := range after {
		if !slices.Contains(before, x) {
			came = append(came, x)
		}
	}
	for _, name := range a.Packages.Want {
		if !slices.ContainsFunc(after, func(x string) bool { return strings.HasPrefix(x, name+" ") }) {
			t.Errorf("%s is not installed", name)
		}
	}
	t.Logf("%d were there, %d came of %d in the repository\n%s", len(before), len(came), len(a.Members)-2, lastLines(out, 3))
	// Nothing is broken, and nothing more is to be done.
	if out := d.run(t, "dpkg", "--audit"); out != "" {
		t.Error(out)
	}
	d.run(t, "apt-get", "check")
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

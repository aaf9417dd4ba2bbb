// Package rpmtest provides a root file system with rpm, rpmbuild, createrepo_c and dnf,
// for tests that compare results with these programs.
package rpmtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Root is a small Debian with rpm, rpmbuild, createrepo_c and dnf, which
// `make rpm-tools` installs. Programs in it run without network access.
type Root struct {
	path string // of the root
	Dir  string // folder of this test, as a path inside the root
}

// New returns the root, or skips the test with the reason.
func New(t *testing.T) *Root {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	root := filepath.Join(cache, "kubexm-lab", "rpmtools")
	if _, err := os.Stat(filepath.Join(root, ".ready")); err != nil {
		t.Skip("rpm, createrepo_c and dnf are not installed: make rpm-tools installs them")
	}
	if os.Getuid() != 0 {
		t.Skip("chroot to the folder with rpm, createrepo_c and dnf requires root")
	}
	dir, err := os.MkdirTemp(filepath.Join(root, "var/tmp"), "kubexm-") //nolint:usetesting // what runs in the root reads it, so it has to be inside
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Mkdir(filepath.Join(dir, "log"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Root{path: root, Dir: strings.TrimPrefix(dir, root)}
}

// Out converts a path inside the root to a path on this machine.
func (r *Root) Out(path string) string { return filepath.Join(r.path, r.Dir, path) }

// Try runs a program in the root.
func (r *Root) Try(t *testing.T, program ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "unshare", append([]string{"--net", "chroot", r.path, "/usr/bin/env", "-i", "-C", r.Dir,
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=" + r.Dir, "GNUPGHOME=" + r.Dir + "/gnupg"}, program...)...)
	b, err := c.CombinedOutput()
	return string(b), err
}

// Run runs a program that must succeed, and returns its output.
func (r *Root) Run(t *testing.T, program ...string) string {
	t.Helper()
	s, err := r.Try(t, program...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(program, " "), err, s)
	}
	return s
}

// Build builds rpm packages from spec files, in the folder rpms.
func (r *Root) Build(t *testing.T, specs ...[]byte) {
	t.Helper()
	for i, spec := range specs {
		name := fmt.Sprintf("%d.spec", i)
		if err := os.WriteFile(r.Out(name), spec, 0o644); err != nil {
			t.Fatal(err)
		}
		r.Run(t, "rpmbuild", "--quiet", "-bb", "--define", "_topdir "+r.Dir+"/build", "--define", "_rpmdir "+r.Dir+"/rpms", "--define", "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
			"--define", "_buildhost test", "--define", "use_source_date_epoch_as_buildtime 1", "--define", "source_date_epoch_from_changelog 0",
			"--define", "_binary_payload w9.gzdio", "--define", "_dbpath "+r.Dir+"/db", "--define", "_unpackaged_files_terminate_build 0", name)
	}
}

// Specs reads the spec files of a folder such as testdata/specs.
func Specs(t *testing.T, dir string) [][]byte {
	t.Helper()
	var out [][]byte
	for _, name := range []string{"base", "first", "second"} {
		b, err := os.ReadFile(filepath.Join(dir, name+".spec"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.TrimSpace(b))
	}
	return out
}

// Install runs dnf to install packages from one folder of the root into a separate root.
func (r *Root) Install(t *testing.T, repo string, names ...string) {
	t.Helper()
	here := func(s string) string { return filepath.Join(r.Dir, s) }
	out := r.Run(t, append([]string{"dnf", "--installroot=" + here("installed"), "--releasever=1", "--forcearch=x86_64", "--assumeyes", "--setopt=reposdir=" + here("none"),
		"--setopt=cachedir=" + here("cache"), "--setopt=logdir=" + here("log"), "--setopt=keepcache=0", "--nogpgcheck",
		"--repofrompath=" + repo + ",file://" + here(repo), "install"}, names...)...)
	t.Log(out)
}

// Installed lists what Install has installed so far.
func (r *Root) Installed(t *testing.T) []string {
	t.Helper()
	return strings.Fields(r.Run(t, "sh", "-c", "rpm --root=$PWD/installed -qa --qf '%{nevra}\\n' | sort"))
}

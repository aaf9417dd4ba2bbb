package rpm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// toolRoot is a small Debian with rpm, rpmbuild, createrepo_c and dnf, which
// `make rpm-tools` brings. It is entered without a network.
type toolRoot struct {
	path string // of the root
	dir  string // of this test, inside the root
}

// tools gives the root, or skips the test and says why.
func tools(t *testing.T) *toolRoot {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	root := filepath.Join(cache, "kubexm-lab", "rpmtools")
	if _, err := os.Stat(filepath.Join(root, ".ready")); err != nil {
		t.Skip("rpm, createrepo_c and dnf are not there: make rpm-tools brings them")
	}
	if os.Getuid() != 0 {
		t.Skip("entering the root of rpm, createrepo_c and dnf needs root")
	}
	dir, err := os.MkdirTemp(filepath.Join(root, "var/tmp"), "kubexm-") //nolint:usetesting // what runs in the root reads it, so it has to be inside
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Mkdir(filepath.Join(dir, "log"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &toolRoot{path: root, dir: strings.TrimPrefix(dir, root)}
}

// out gives a path of the root as it is outside.
func (r *toolRoot) out(path string) string { return filepath.Join(r.path, r.dir, path) }

// try runs a program in the root.
func (r *toolRoot) try(t *testing.T, program ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "unshare", append([]string{"--net", "chroot", r.path, "/usr/bin/env", "-i", "-C", r.dir,
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "HOME=" + r.dir, "GNUPGHOME=" + r.dir + "/gnupg"}, program...)...)
	b, err := c.CombinedOutput()
	return string(b), err
}

func (r *toolRoot) run(t *testing.T, program ...string) string {
	t.Helper()
	s, err := r.try(t, program...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(program, " "), err, s)
	}
	return s
}

// build makes rpms of spec files, in the folder rpms.
func (r *toolRoot) build(t *testing.T, specs ...[]byte) {
	t.Helper()
	for i, spec := range specs {
		name := fmt.Sprintf("%d.spec", i)
		if err := os.WriteFile(r.out(name), spec, 0o644); err != nil {
			t.Fatal(err)
		}
		r.run(t, "rpmbuild", "--quiet", "-bb", "--define", "_topdir "+r.dir+"/build", "--define", "_rpmdir "+r.dir+"/rpms", "--define", "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
			"--define", "_buildhost test", "--define", "use_source_date_epoch_as_buildtime 1", "--define", "source_date_epoch_from_changelog 0",
			"--define", "_binary_payload w9.gzdio", "--define", "_dbpath "+r.dir+"/db", "--define", "_unpackaged_files_terminate_build 0", name)
	}
}

// specs reads testdata/specs.
func specs(t *testing.T) [][]byte {
	t.Helper()
	var out [][]byte
	for _, name := range []string{"base", "first", "second"} {
		b, err := os.ReadFile("testdata/specs/" + name + ".spec")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.TrimSpace(b))
	}
	return out
}

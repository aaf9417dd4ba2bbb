package runner

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/rpm/rpmtest"
)

// specs are a program, a library that it requires, and another program that requires the
// library by a name that it provides.
var specs = []string{`Name: tool
Version: 1.2
Release: 3
Summary: x
License: none
BuildArch: noarch
Requires: lib >= 1
Recommends: extra
%description
x
%files

%package -n lib
Summary: x
Provides: lib.so.1()(64bit)
%description -n lib
x
%files -n lib

%package -n extra
Summary: x
%description -n extra
x
%files -n extra
`, `Name: theirs
Version: 1
Release: 1
Summary: x
License: none
BuildArch: noarch
Requires: lib.so.1()(64bit)
%description
x
%files
`}

// redHat is a host with dnf, in a layer over the root of rpmtest, without a network.
type redHat struct{ pid, root string }

func newRedHat(t *testing.T, r *rpmtest.Root) redHat {
	t.Helper()
	dir := t.TempDir()
	host := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "sh", "-ec",
		`mount -t tmpfs none "$1"; cd "$1"; mkdir up work root; mount -t overlay -o "lowerdir=$2,upperdir=up,workdir=work" none root; echo ready; exec sleep 600`,
		"sh", dir, filepath.Clean(strings.TrimSuffix(r.Out(""), r.Dir)))
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = host.Process.Kill()
		_ = host.Wait() // killed
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Skipf("no layer can be laid over a root here: %v", err)
	}
	return redHat{strconv.Itoa(host.Process.Pid), filepath.Join(dir, "root")}
}

// run runs one of the scripts, and returns its output and exit status.
func (h redHat) run(t *testing.T, script string, args ...string) (out, errs string, exit int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nsenter", append([]string{"-t", h.pid, "-m", "-n", "chroot", h.root,
		"/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "/bin/sh", "-c", script, "sh"}, args...)...)
	var o, e strings.Builder
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

func (h redHat) must(t *testing.T, script string, args ...string) string {
	t.Helper()
	out, errs, exit := h.run(t, script, args...)
	if exit != 0 {
		t.Fatalf("exit %d: %s%s", exit, out, errs)
	}
	t.Log(out + errs)
	return out
}

func (h redHat) packages(t *testing.T, names ...string) (ids []string, p Packages) {
	t.Helper()
	p, err := parsePackages(manifest.RPM, []byte(h.must(t, scriptPackages, append([]string{manifest.RPM}, names...)...)))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range p.All {
		ids = append(ids, x.ID)
	}
	return ids, p
}

// TestPackagesOfRPM runs the scripts with a real dnf.
func TestPackagesOfRPM(t *testing.T) {
	r := rpmtest.New(t)
	r.Build(t, []byte(specs[0]), []byte(specs[1]))
	r.Run(t, "createrepo_c", "--quiet", "rpms")
	h := newRedHat(t, r)
	top, err := os.ReadFile(r.Out("rpms/repodata/repomd.xml"))
	if err != nil {
		t.Fatal(err)
	}
	sha := sha256.Sum256(top)
	sum := hex.EncodeToString(sha[:])
	install := func(sum string, names ...string) (string, int) {
		_, errs, exit := h.run(t, scriptPackagesInstall, append([]string{manifest.RPM, "/var/tmp/work", "file://" + r.Dir + "/rpms/", sum, "5"}, names...)...)
		if _, err := os.Stat(r.Out("work")); err == nil {
			t.Error("the folder is left")
		}
		return errs, exit
	}
	// The host's own settings would have turned it away, and asked somewhere else.
	h.must(t, `mkdir -p /etc/dnf /etc/yum.repos.d; printf '[main]\nexclude=tool\nproxy=http://192.0.2.1:3128\n' >/etc/dnf/dnf.conf
printf '[far]\nname=far\nbaseurl=http://192.0.2.1/\nenabled=1\n' >/etc/yum.repos.d/far.repo`)

	if errs, exit := install(strings.Repeat("0", 64), "tool"); exit != exitForeign || !strings.Contains(errs, "is not the one of the bundle") {
		t.Errorf("another repository: exit %d, %s", exit, errs)
	}
	if errs, exit := install(sum, "tool"); exit != 0 {
		t.Fatalf("exit %d: %s", exit, errs)
	}
	ids, p := h.packages(t, "tool", "lib.so.1()(64bit)", "/no/such/file", "extra")
	if d := cmp.Diff([]string{"lib.noarch", "tool.noarch"}, ids); d != "" {
		t.Errorf("-want +installed: %s", d)
	}
	if d := cmp.Diff([]string{"tool", "lib.so.1()(64bit)"}, p.Provided); d != "" || p.Problems != nil || p.Busy != "" || !p.Has("tool") {
		t.Errorf("%s %+v", d, p)
	}
	if out := h.must(t, scriptPackagesFree, manifest.RPM, "lib.noarch", "tool.noarch"); out != "" {
		t.Errorf("kept are %q", out)
	}
	if errs, exit := install(sum, "theirs"); exit != 0 {
		t.Fatalf("exit %d: %s", exit, errs)
	}
	if out := h.must(t, scriptPackagesFree, manifest.RPM, "lib.noarch", "tool.noarch"); out != "kept\tlib.noarch\n" {
		t.Errorf("kept are %q", out)
	}
	h.must(t, scriptPackagesRemove, manifest.RPM, "5", "0", "tool.noarch")
	h.must(t, scriptPackagesRemove, manifest.RPM, "5", "2", "lib.noarch", "theirs.noarch")
	if ids, _ := h.packages(t); ids != nil {
		t.Errorf("left are %q", ids)
	}
	if _, exit := install(sum, "no-such-package"); exit == 0 {
		t.Error("what is not there was installed")
	}
}

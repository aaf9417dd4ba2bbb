package repack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// debianRoot is a Debian of four packages.
func debianRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"var/lib/dpkg/status": `Package: conntrack
Status: install ok installed
Architecture: amd64
Version: 1:1.4.7-1+b2
Depends: libc6 (>= 2.34), dpkg, libct | libother, mta-thing | tool (= 2-1)
Conffiles:
 /etc/ct.conf 0123
Description: 100% tracking
 more of it

Package: libct
Status: install ok installed
Architecture: amd64
Version: 5
Provides: ct-abi (= 5)
Description: x

Package: tool
Status: install ok installed
Architecture: all
Version: 2-1
Description: x

Package: dpkg
Status: install ok installed
Architecture: amd64
Version: 1
Description: x

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
Description: x
`,
		"var/lib/dpkg/info/conntrack.list":   "/.\n/sbin\n/sbin/conntrack\n/etc\n/etc/ct.conf\n/etc/init.d\n/etc/init.d/ct\n/usr/share/doc/ct\n/lib/systemd/system/ct.service\n/lib/systemd/system/ct@.service\n",
		"var/lib/dpkg/info/libct:amd64.list": "/.\n/usr/lib/ct.so\n/usr/share/man/left-out.1\n",
		"var/lib/dpkg/info/tool.list":        "/.\n/usr/bin/tool-real\n",
		"var/lib/dpkg/info/dpkg.list":        "/usr/bin/dpkg\n/etc/logrotate.d/dpkg\n",
		"usr/sbin/conntrack":                 "", "etc/ct.conf": "", "etc/init.d/ct": "", "usr/lib/systemd/system/ct.service": "", "usr/lib/systemd/system/ct@.service": "",
		"usr/lib/ct.so": "", "usr/bin/tool-real": "", "usr/bin/dpkg": "", "etc/logrotate.d/dpkg": "", "etc/passwd": "", "etc/hostname": "", "etc/ssl/certs/a.pem": "", "etc/iscsi/initiatorname.iscsi": "",
	} {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "etc/alternatives"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"usr/bin/tool": "/etc/alternatives/tool", "etc/alternatives/tool": "/bin/tool-real", "sbin": "usr/sbin", "bin": "usr/bin", "lib": "usr/lib"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestWrite(t *testing.T) {
	root := debianRoot(t)
	dir := filepath.Join(root, "build")
	if err := Write(root, dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, want := range map[string]string{
		"lists/conntrack-tools": `%dir "/etc"
%dir "/usr/sbin"
%config(noreplace) "/etc/ct.conf"
"/usr/lib/systemd/system/ct.service"
"/usr/lib/systemd/system/ct@.service"
"/usr/sbin/conntrack"
`,
		"lists/libct":                 "\"/usr/lib/ct.so\"\n",
		"lists/tool":                  "\"/usr/bin/tool\"\n\"/usr/bin/tool-real\"\n",
		"lists/setup":                 "%config(noreplace) \"/etc/passwd\"\n",
		"lists/ca-certificates":       "%config(noreplace) \"/etc/ssl/certs/a.pem\"\n",
		"lists/iscsi-initiator-utils": "%ghost \"/etc/iscsi/initiatorname.iscsi\"\n",
		"links.sh":                    "ln -sfn bash $RPM_BUILD_ROOT/usr/bin/sh\nln -sfn /bin/tool-real $RPM_BUILD_ROOT/usr/bin/tool\n",
	} {
		if strings.HasPrefix(name, "lists/") {
			want = "%defattr(-,-,-)\n" + want
		}
		if got := read(name); got != want {
			t.Errorf("%s is\n%s", name, got)
		}
	}
	spec := read("kubexmlab.spec")
	for _, want := range []string{`
%package -n conntrack-tools
AutoReqProv: no
Summary: 100%% tracking
Epoch: 1
Version: 1.4.7
Release: 1+b2
Requires: filesystem
Requires: libct
Requires: tool = 0:2-1
Provides: conntrack
%description -n conntrack-tools
From Debian's package conntrack 1:1.4.7-1+b2.
%files -n conntrack-tools -f /build/lists/conntrack-tools
%posttrans -n conntrack-tools
systemctl preset ct.service >/dev/null 2>&1
`, "\n%package -n libct\nAutoReqProv: no\nSummary: x\nEpoch: 0\nVersion: 5\nRelease: 1\nRequires: filesystem\nProvides: ct-abi\n"} {
		if !strings.Contains(spec, want) {
			t.Errorf("the spec file lacks\n%s", want)
		}
	}
	for _, no := range []string{"-n dpkg", "-n gone", "libc6 "} {
		if strings.Contains(spec, no) {
			t.Errorf("the spec file has %q", no)
		}
	}
}

func TestVersions(t *testing.T) {
	for in, want := range map[string][3]string{
		"1:2.3~rc1-4+deb12u1": {"1", "2.3~rc1", "4+deb12u1"}, "5": {"0", "5", "1"}, "1-2-3": {"0", "1.2", "3"},
	} {
		epoch, v, release := evr(in)
		if got := [3]string{epoch, v, release}; got != want {
			t.Errorf("%s became %q, want %q", in, got, want)
		}
	}
}

// TestKey: a test is not part of what is made.
func TestKey(t *testing.T) {
	key, err := Key()
	if err != nil || len(key) != 64 {
		t.Fatalf("%q, %v", key, err)
	}
}

package runner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
)

const debList = "native\tamd64\n" +
	"is\tinstalled\tzlib1g:amd64\tzlib1g\t1:1.2\tamd64\n" +
	"is\tinstalled\tzlib1g:i386\tzlib1g\t1:1.2\ti386\n" +
	"is\tconfig-files\tsocat\tsocat\t1.7\tamd64\n" +
	"is\thalf-configured\tnfs-common\tnfs-common\t2.6\tamd64\n" +
	"is\tinstalled\tonly:i386\tonly\t1\ti386\n" +
	"is\tnot-installed\tgone\tgone\t\tamd64\n" +
	"trouble\tnfs-common is half-configured\nprovided\tmail-transport-agent\n"

func TestParsePackages(t *testing.T) {
	p, err := parsePackages(manifest.Deb, []byte(debList))
	if err != nil {
		t.Fatal(err)
	}
	want := Packages{
		Format: manifest.Deb, Native: "amd64", Provided: []string{"mail-transport-agent"}, Problems: []string{"nfs-common is half-configured"},
		All: []Package{
			{"nfs-common", "nfs-common", "2.6", "amd64", "half-configured"}, {"only:i386", "only", "1", "i386", StateInstalled},
			{"socat", "socat", "1.7", "amd64", StateConfig}, {"zlib1g", "zlib1g", "1:1.2", "amd64", StateInstalled}, {"zlib1g:i386", "zlib1g", "1:1.2", "i386", StateInstalled},
		},
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
	for name, has := range map[string]bool{"zlib1g": true, "only": false, "socat": false, "nfs-common": false, "mail-transport-agent": true, "gone": false} {
		if p.Has(name) != has {
			t.Errorf("has %s: %t", name, !has)
		}
	}
	q, err := parsePackages(manifest.RPM, []byte("busy\tdnf (process 7)\nis\tinstalled\tgpg-pubkey.(none)\tgpg-pubkey\t1-1\t(none)\nis\tinstalled\tsocat.x86_64\tsocat\t1-1\tx86_64\n"))
	if err != nil || q.Busy != "dnf (process 7)" || len(q.All) != 1 || !q.Has("socat") {
		t.Errorf("%+v, %v", q, err)
	}
	for _, bad := range []string{"is\tinstalled\tx\n", "nonsense\n", "native\n"} {
		if _, err := parsePackages(manifest.Deb, []byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestNamesOfPackages(t *testing.T) {
	for _, good := range []string{"socat", "libstdc++6", "libc6:i386", "/usr/sbin/ebtables", "lib.so.1()(64bit)", "g++~1^2"} {
		if err := checkPackages(manifest.Deb, []string{good}); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "-o", "a b", "a;b", "a$(b)", "a\n", "*", strings.Repeat("a", 300)} {
		if checkPackages(manifest.Deb, []string{bad}) == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if checkPackages("apk", nil) == nil {
		t.Error("an unknown format was taken")
	}
}

func FuzzPackages(f *testing.F) {
	f.Add(debList)
	f.Add("busy\tx\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePackages(manifest.Deb, []byte(text))
		if err != nil {
			return
		}
		for _, x := range p.All {
			if got, ok := p.Find(x.ID); !ok || got.ID != x.ID {
				t.Errorf("%q is not found again", x.ID)
			}
		}
	})
}

// TestJobsHaveNoLineBreaks: systemd would lose such a job on a daemon-reload.
func TestJobsHaveNoLineBreaks(t *testing.T) {
	if (Job{Name: "x", Argv: []string{"sh", "-c", "a\nb"}}).check() == nil {
		t.Error("a job with a line break was taken")
	}
	if err := (Job{Name: "x", Argv: []string{"sh"}, Script: "a\nb"}).check(); err != nil {
		t.Error(err)
	}
}

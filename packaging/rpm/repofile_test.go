package rpm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodRepos = `# comment
[main]
gpgcheck=1

[baseos]
name=Some Linux $releasever - BaseOS
baseurl=https://mirror.example.org/$releasever/BaseOS/$basearch/os/
        https://other.example.org/${releasever}/BaseOS/$basearch/os/,
	http://third.example.org/$mirror/os
; a comment between
gpgkey = file:///etc/pki/rpm-gpg/KEY-$releasever https://example.org/key
gpgcheck=1
repo_gpgcheck=True
priority = 10
enabled=yes

[hotfix]
name: written with a colon
baseurl: file:///media/hotfix
module_hotfixes=1
excludepkgs=kernel*, nginx
includepkgs=n*

[off]
mirrorlist=https://example.org/?nothing
enabled=0
`

func TestParseRepositories(t *testing.T) {
	vars, err := NewVariables("9.4", "x86_64")
	if err != nil {
		t.Fatal(err)
	}
	vars["mirror"] = "close"
	got, problems := ParseRepositories("some.repo", []byte(strings.ReplaceAll(goodRepos, "\n[hotfix]", "\r\n[hotfix]")), FileOptions{Vars: vars})
	if len(problems) > 0 {
		t.Error(problems)
	}
	want := []Repository{
		{ID: "baseos", Name: "Some Linux 9.4 - BaseOS", Bases: []string{"https://mirror.example.org/9.4/BaseOS/x86_64/os/",
			"https://other.example.org/9.4/BaseOS/x86_64/os/", "http://third.example.org/close/os"},
			Keys: []string{"file:///etc/pki/rpm-gpg/KEY-9.4", "https://example.org/key"}, SignedPackages: true, SignedMetadata: true, Priority: 10},
		{ID: "hotfix", Name: "written with a colon", Bases: []string{"file:///media/hotfix"}, Priority: 99, ModuleHotfixes: true,
			Exclude: []string{"kernel*", "nginx"}, Include: []string{"n*"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseRepositoriesFindsEveryProblem(t *testing.T) {
	vars, err := NewVariables("9", "x86_64")
	if err != nil {
		t.Fatal(err)
	}
	got, problems := ParseRepositories("some.repo", []byte(`stray = 1
[one
[mirrors]
mirrorlist=https://example.org/list
[metalink]
metalink=https://example.org/link
[nowhere]
name=nowhere
[odd]
baseurl=ftp://example.org/$nothing mirror.example.org
gpgcheck=perhaps
repo_gpgcheck=1
priority=high
proxy=http://proxy:3128
[unkeyed]
baseurl=http://example.org/a
gpgcheck=1
[plain]
baseurl=https://example.org/a
gpgkey=http://example.org/key
[plain]
baseurl=https://example.org/b
neither
`), FileOptions{Vars: vars})
	if d := cmp.Diff([]Repository{{ID: "plain", Name: "plain", Bases: []string{"https://example.org/a"}, Keys: []string{"http://example.org/key"}, Priority: 99}}, got); d != "" {
		t.Error(d)
	}
	want := `some.repo:1:0: error: "stray = 1" is neither a name in brackets nor key=value
some.repo:2:0: error: "[one" is not a name in brackets
some.repo:2:0: error: one: the repository has no baseurl; set its address as baseurl
some.repo:4:0: error: mirrors.mirrorlist: mirror lists are not supported, since they return another mirror each time; set baseurl to the address of one mirror, or disable the repository with enabled=0
some.repo:6:0: error: metalink.metalink: mirror lists are not supported, since they return another mirror each time; set baseurl to the address of one mirror, or disable the repository with enabled=0
some.repo:7:0: error: nowhere: the repository has no baseurl; set its address as baseurl
some.repo:10:0: error: odd.baseurl: "ftp://example.org/" is not a valid URL; use a URL that begins with http://, https://, file://
some.repo:10:0: error: odd.baseurl: "mirror.example.org" is not a valid URL; use a URL that begins with http://, https://, file://
some.repo:10:0: error: odd.baseurl: the variable $nothing has no value; set it in /etc/dnf/vars, or write its value
some.repo:11:0: error: odd.gpgcheck: "perhaps" is not a boolean; write 1 or 0
some.repo:12:0: error: odd.repo_gpgcheck: its metadata must be signed, but it has no key; set its gpgkey, or repo_gpgcheck=0
some.repo:13:0: error: odd.priority: priority "high" is not a number
some.repo:14:0: warning: odd.proxy: it is ignored; if the repository cannot be reached without it, set a mirror in spec.sources that does not need it
some.repo:17:0: error: unkeyed.gpgcheck: its packages must be signed, but it has no key; set its gpgkey, or gpgcheck=0
some.repo:20:0: warning: plain.gpgkey: http://example.org/key is downloaded over plain http: an attacker on the network can replace the key; use an https URL or a file
some.repo:21:0: error: plain: the repository is configured twice
some.repo:23:0: error: "neither" is neither a name in brackets nor key=value`
	if d := cmp.Diff(want, problems.Error()); d != "" {
		t.Error(d)
	}
}

func TestReadRepositories(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"b.repo": "[b]\nbaseurl=https://example.org/b\n", "a.repo": "[a]\nbaseurl=https://example.org/$osname/$basearch/\n", "c.repo.rpmsave": "[c]\nbroken",
		"d.repo": "[b]\nbaseurl=https://example.org/d\n", "vars/osname": "linux\nmore\n",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	vars, err := NewVariables("9", "i686", filepath.Join(dir, "vars"), filepath.Join(dir, "nowhere"))
	if err != nil {
		t.Fatal(err)
	}
	got, problems := ReadRepositories(dir, FileOptions{Vars: vars})
	want := []Repository{{ID: "a", Name: "a", Bases: []string{"https://example.org/linux/i386/"}, Priority: 99}, {ID: "b", Name: "b", Bases: []string{"https://example.org/b"}, Priority: 99}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if text := strings.ReplaceAll(problems.Error(), dir, ""); text != "/d.repo: error: b: the repository is also in /b.repo; disable one of them with enabled=0" {
		t.Error(text)
	}
	if got, problems := ReadRepositories(filepath.Join(dir, "nowhere"), FileOptions{Vars: vars}); len(got)+len(problems) > 0 {
		t.Errorf("%v %v", got, problems)
	}
}

func FuzzRepositories(f *testing.F) {
	f.Add(goodRepos)
	f.Add("[a]\n b\nc=$\n\ufeff[\n[]")
	f.Fuzz(func(t *testing.T, s string) {
		all, _ := ParseRepositories("f", []byte(s), FileOptions{Vars: Variables{"a": "b"}})
		for _, r := range all {
			if r.ID == "" || len(r.Bases) == 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}

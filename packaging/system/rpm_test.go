package system

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/packaging/rpm/rpmtest"
)

// later is after packaging/rpm/testdata/repo was signed.
var later = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// rpmSite is packaging/rpm/testdata/repo at rpm.test, copied so that it can be spoilt.
func rpmSite(t *testing.T) *site {
	t.Helper()
	s := &site{dir: filepath.Join(t.TempDir(), "repo"), base: t.TempDir(), etc: t.TempDir()}
	if err := os.CopyFS(s.dir, os.DirFS("../rpm/testdata/repo")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"right", "other"} {
		key, err := os.ReadFile("../rpm/testdata/keys/" + name + ".asc")
		if err != nil {
			t.Fatal(err)
		}
		s.put(t, name+".asc", string(key))
	}
	s.folders = folders{"https://rpm.test/1/x86_64": s.dir}
	return s
}

const repository = "[test]\nbaseurl=https://rpm.test/$releasever/$basearch/\n"

func askRPM(sources []string, names ...string) manifest.Artifact {
	a := wanted(manifest.Platform{OS: "linux", Arch: "amd64", Distribution: "test", Release: "1"}, names...)
	a.Packages.Format, a.Packages.Sources = manifest.RPM, sources
	return a
}

func (s *site) rpmOptions() Options { return Options{Base: s.base, Etc: s.etc, Now: later} }

func TestPinRPM(t *testing.T) {
	for _, x := range []struct {
		name, repo string
		keys       []string
		change     func(t *testing.T, s *site)
		trust      manifest.Trust
		want       []string // notes; or the error, where there is no trust
	}{
		{"signed metadata", "gpgkey=right.asc\nrepo_gpgcheck=1\n", nil, nil, manifest.FromPublished, nil},
		{"signed metadata, its key beside", "repo_gpgcheck=1\n", []string{"right.asc"}, nil, manifest.FromPublished, nil},
		{"signed packages", "gpgkey=right.asc\ngpgcheck=1\n", nil, unsigned, manifest.FromPublished, nil},
		{"signed packages, their key beside", "", []string{"right.asc"}, unsigned, manifest.FromPublished, nil},
		{"packages of another key", "gpgkey=other.asc\ngpgcheck=1\n", nil, unsigned, "", []string{"repository test: socat ", "unknown entity"}},
		{"other packages", "gpgkey=right.asc\ngpgcheck=1\n", nil, func(t *testing.T, s *site) {
			unsigned(t, s)
			write(t, filepath.Join(s.dir, "Packages/socat-1.8.0.0-1~rc2.noarch.rpm"), "evil")
		}, "", []string{"socat 1.8.0.0-1~rc2 (noarch): it has 4 bytes"}},
		{"nobody", "gpgcheck=0\n", nil, unsigned, manifest.FromContent, []string{"only the connection to it is trusted", "some of its packages have no signature"}},
		{"a wrong key", "gpgkey=other.asc\nrepo_gpgcheck=1\n", nil, nil, "", []string{"unknown entity"}},
		{"no signature", "gpgkey=right.asc\nrepo_gpgcheck=1\n", nil, unsigned, "", []string{"signature of repodata/repomd.xml"}},
		{"no key", "gpgcheck=1\n", nil, nil, "", []string{"test.repo:", "it has no key; set its gpgkey"}},
		{"tampered", "gpgkey=right.asc\nrepo_gpgcheck=1\n", nil, func(t *testing.T, s *site) {
			name := filepath.Join(s.dir, "repodata/repomd.xml")
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			write(t, name, string(b)+" ")
		}, "", []string{"repomd.xml: signature"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := rpmSite(t)
			s.put(t, "test.repo", repository+x.repo)
			if x.change != nil {
				x.change(t, s)
			}
			asked := askRPM([]string{"test.repo"}, "socat")
			asked.Packages.Keys = x.keys
			a, notes, err := Pin(t.Context(), s, asked, s.rpmOptions())
			if x.trust == "" {
				for _, part := range x.want {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("%v says nothing of %s", err, part)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(notes) != len(x.want) || a.Trust != x.trust {
				t.Errorf("%s, %q", a.Trust, notes)
			}
			for i, part := range x.want {
				if !strings.Contains(notes[i], part) {
					t.Errorf("%q says nothing of %s", notes[i], part)
				}
			}
			checkRPM(t, s, a)
		})
	}
}

// unsigned makes a repository of one package that is signed, and is not itself.
func unsigned(t *testing.T, s *site) {
	t.Helper()
	s.put(t, "all/test.repo", repository)
	a, _, err := Pin(t.Context(), s, askRPM([]string{"all/"}, "socat"), s.rpmOptions())
	if err != nil {
		t.Fatal(err)
	}
	a.Members = slices.DeleteFunc(a.Members, func(m manifest.Member) bool { return !strings.HasPrefix(m.Package, "socat ") })
	needs := regexp.MustCompile(`(?s)<rpm:requires>.*</rpm:requires>`)
	a.Members[0].Record = needs.ReplaceAllString(a.Members[0].Record, "")
	file, err := os.ReadFile(filepath.Join(s.dir, "socat-1.8.0.0-1~rc2.noarch.rpm"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(s.dir, a.Members[0].Path), string(file))
	files, err := Metadata(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		write(t, filepath.Join(s.dir, f.Path), string(f.Content))
	}
}

func checkRPM(t *testing.T, s *site, a manifest.Artifact) {
	t.Helper()
	all := carried(a)
	if all[len(all)-1] != "socat 1.8.0.0-1~rc2 (noarch)" {
		t.Error(all)
	}
	m := a.Members[len(all)-1]
	if m.Path != "Packages/socat-1.8.0.0-1~rc2.noarch.rpm" || !strings.HasPrefix(m.Address, "https://rpm.test/1/x86_64/") || !strings.HasSuffix(m.Address, "/socat-1.8.0.0-1~rc2.noarch.rpm") {
		t.Errorf("%+v", m)
	}
	if d := cmp.Diff([]string{"test https://rpm.test/1/x86_64/"}, a.Packages.Repositories); d != "" {
		t.Error(d)
	}
	metadataOf(t, a)
	throughLock(t, a)
	again, _, err := Pin(t.Context(), s, a, s.rpmOptions())
	if err != nil {
		t.Fatal(err)
	}
	same(t, a, again)
}

// TestPinRPMOwn: what the machine itself is configured for counts where it is of the
// wanted distribution, and of the release, or follows it.
func TestPinRPMOwn(t *testing.T) {
	for _, x := range []struct{ name, system, repo, want string }{
		{"the same", "ID=test\nVERSION_ID=1\n", repository, ""},
		{"another release", "ID=\"test\"\nVERSION_ID=\"2.3\"\n", repository, ""},
		{"another release, fixed", "ID=test\nVERSION_ID=2\n", "[test]\nbaseurl=https://rpm.test/1/x86_64/\n", "yum.repos.d contains none for it; list its repositories"},
		{"another distribution", "ID=other\nVERSION_ID=1\n", repository, "no repository of test 1 (x86_64) is configured on this machine: this machine runs other 1; list its repositories in spec.bundle.operatingSystems.repositories"},
		{"nothing", "ID=test\nVERSION_ID=1\n", "", "yum.repos.d contains none for it"},
		{"no distribution", "", repository, "is configured on this machine"},
		{"a mistake", "ID=test\nVERSION_ID=1\n", "[test]\n", "has no baseurl"},
	} {
		s := rpmSite(t)
		if x.system != "" {
			write(t, filepath.Join(s.etc, "os-release"), x.system)
		}
		if x.repo != "" {
			write(t, filepath.Join(s.etc, "yum.repos.d/test.repo"), x.repo+"gpgkey=file://"+s.base+"/right.asc\nrepo_gpgcheck=1\n")
		}
		a, _, err := Pin(t.Context(), s, askRPM(nil, "socat"), s.rpmOptions())
		switch {
		case x.want == "" && err != nil:
			t.Errorf("%s: %v", x.name, err)
		case x.want == "":
			checkRPM(t, s, a)
		case err == nil || !strings.Contains(err.Error(), x.want):
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

func TestPinRPMRefuses(t *testing.T) {
	for _, x := range []struct {
		sources, names []string
		want           string
	}{
		{[]string{"deb http://a b c"}, []string{"socat"}, "repositories[0]: error: it configures apt"},
		{[]string{"none.repo"}, []string{"socat"}, "none.repo"},
		{[]string{"folder/"}, []string{"socat"}, "folder/"},
		{[]string{"test.repo", "test.repo"}, []string{"socat"}, "the repository is configured twice"},
		{[]string{"off.repo"}, []string{"socat"}, "it contains no enabled repository"},
		{[]string{"test.repo"}, []string{"socta", "nothing | crony"}, "no repository has the package nothing | crony; available: chrony"},
		{[]string{"test.repo"}, []string{"socta", "nothing | crony"}, "no repository has the package socta; available: socat"},
	} {
		s := rpmSite(t)
		s.put(t, "test.repo", repository+"gpgkey=right.asc\n")
		s.put(t, "off.repo", repository+"enabled=0\n")
		if _, _, err := Pin(t.Context(), s, askRPM(x.sources, x.names...), s.rpmOptions()); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v, not %s", x.sources, err, x.want)
		}
	}
}

// TestInstallRPM has dnf install what is pinned out of a repository that createrepo_c
// made, from the repository that is written of it, on an installation that has only
// the base, where nothing leads out.
func TestInstallRPM(t *testing.T) {
	r := rpmtest.New(t)
	r.Build(t, rpmtest.Specs(t, "../rpm/testdata/specs")...)
	r.Run(t, "createrepo_c", "--quiet", "--no-database", "rpms")
	s := &site{folders: folders{"https://rpm.test/rpms": r.Out("rpms")}, base: t.TempDir(), etc: t.TempDir()}
	s.put(t, "test.repo", "[test]\nbaseurl=https://rpm.test/rpms\n")
	names := strings.Fields("socat bash-completion chrony rich-or rich-and rich-else rich-nested rich-with rich-without")
	a, _, err := Pin(t.Context(), s, askRPM([]string{"test.repo"}, append([]string{"nowhere | /usr/bin/ls"}, names...)...), s.rpmOptions())
	if err != nil {
		t.Fatal(err)
	}
	files := metadataOf(t, a)
	for _, m := range a.Members {
		if m.Package != "" {
			b, err := readAll(t.Context(), s, m.Address)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, File{Path: m.Path, Content: b})
		}
	}
	for _, f := range files {
		write(t, r.Out(filepath.Join("ours", f.Path)), string(f.Content))
	}
	r.Install(t, "rpms", "bash", "coreutils", "filesystem", "glibc", "setup")
	before := r.Installed(t)
	r.Install(t, "ours", names...)
	var came, want []string
	for _, x := range r.Installed(t) {
		if !slices.Contains(before, x) {
			came = append(came, x)
		}
	}
	for _, m := range a.Members {
		if name := strings.TrimSuffix(filepath.Base(m.Path), ".rpm"); m.Package != "" && !slices.Contains(before, name) {
			want = append(want, name)
		}
	}
	for i, x := range came {
		came[i] = strings.NewReplacer("-1:", "-").Replace(x) // a file's name has no epoch
	}
	slices.Sort(came)
	slices.Sort(want)
	if d := cmp.Diff(want, came); d != "" {
		t.Error(d)
	}
	t.Logf("%d packages on %d: %s; left out %s", len(came), len(before), came, a.Packages.Base)
}

func readAll(ctx context.Context, s *site, address string) ([]byte, error) {
	f, err := s.Open(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	defer f.Close()
	return io.ReadAll(f)
}

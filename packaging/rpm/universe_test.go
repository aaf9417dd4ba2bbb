package rpm

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/packaging"
)

const modulesYAML = `---
document: modulemd
version: 2
data:
  name: nginx
  stream: 1.10
  artifacts:
    rpms:
    - nginx-0:1.24-1.module.x86_64
    - nginx-mod-1:1.24-1.module.noarch
    - nginx-0:1.24-1.module.src
---
document: modulemd-defaults
version: 1
data:
  module: nginx
  stream: "1.10"
...
`

// TestUniverse has repositories of different priorities, modules and base packages.
func TestUniverse(t *testing.T) {
	m := memory{}
	a := m.repository(t, "https://a.test", "gz", map[string]string{"modules": modulesYAML,
		"primary": primaryOf("nginx 1.24-1.module", "nginx-mod 1:1.24-1.module noarch", "nginx 1.20-1", "coreutils-single 9-1", "socat 2-1", "glibc 1-1", "glibc 2-1")})
	b := m.repository(t, "https://b.test", "zst", map[string]string{"primary": primaryOf("socat 1-1", "chrony 1-1", "glibc 2-1")})
	hot := m.repository(t, "https://hot.test", "gz", map[string]string{"primary": primaryOf("nginx-mod 1:1.24-1.module noarch")})
	b.Priority, hot.ModuleHotfixes = 10, true
	for _, c := range []struct {
		name         string
		repositories []Repository
		want         []string
		notes        []string
		base         []string
	}{
		{"alone", []Repository{a}, []string{"coreutils-single-9-1.x86_64", "glibc-2-1.x86_64", "nginx-1.20-1.x86_64", "socat-2-1.x86_64"},
			[]string{"2 packages of module streams are skipped: nginx"}, []string{"coreutils-single-9-1.x86_64", "glibc-2-1.x86_64"}},
		{"beside one of a higher priority", []Repository{a, b}, []string{"chrony-1-1.x86_64", "coreutils-single-9-1.x86_64", "glibc-2-1.x86_64", "nginx-1.20-1.x86_64", "socat-1-1.x86_64"},
			[]string{"2 packages of module streams are skipped: nginx"}, []string{"coreutils-single-9-1.x86_64", "glibc-2-1.x86_64"}},
		{"beside one of hotfixes", []Repository{a, hot}, []string{"coreutils-single-9-1.x86_64", "glibc-2-1.x86_64", "nginx-1.20-1.x86_64", "nginx-mod-1:1.24-1.module.noarch", "socat-2-1.x86_64"},
			[]string{"2 packages of module streams are skipped: nginx"}, []string{"coreutils-single-9-1.x86_64", "glibc-2-1.x86_64"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			read, err := Read(t.Context(), m, c.repositories, options)
			if err != nil {
				t.Fatal(err)
			}
			u, notes, err := read.Universe()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			var latest []*packaging.Package
			read.each(func(e *entry) {
				if found := u.Find(packaging.Relation{Name: e.Name}); len(found) > 0 && !got[e.Name] {
					got[e.Name] = true
					latest = append(latest, found[0])
				}
			})
			if d := cmp.Diff(c.want, nevras(latest)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.notes, notes); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(c.base, nevras(u.Base())); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestModulesAreChecked has modules.yaml be none.
func TestModulesAreChecked(t *testing.T) {
	for _, content := range []string{"document: [", "data: {artifacts: {rpms: 7}}\n", "a: &a [b]\nb: *c\n"} {
		m := memory{}
		r := m.repository(t, "https://a.test", "gz", map[string]string{"primary": fewPackages, "modules": content})
		if _, err := Read(t.Context(), m, []Repository{r}, options); err == nil || !strings.Contains(err.Error(), "document 1") {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestOrder has packages of which each would do.
func TestOrder(t *testing.T) {
	entry := func(name, format string) string { return name + "; <rpm:provides>" + format + "</rpm:provides>" }
	v := func(version string) string { return `<rpm:entry name="v" flags="EQ" epoch="0" ver="` + version + `"/>` }
	const plainV = `<rpm:entry name="v"/>`
	for _, c := range []struct {
		name     string
		packages []string
		want     string
	}{
		{"by name", []string{entry("bb 1-1", plainV), entry("a 1-1", plainV), entry("v 1-1", "")}, "a-1-1.x86_64"},
		{"the later version provided", []string{entry("a 1-1", v("1")), entry("b 1-1", v("2"))}, "b-1-1.x86_64"},
		{"what looks like a hash is no version", []string{entry("a 1-1", v("1234")), entry("b 1-1", v("2234"))}, "a-1-1.x86_64"},
		{"the latest of a name", []string{entry("a 1-1", plainV), entry("a 2-1", plainV)}, "a-2-1.x86_64"},
		{"none that there is a later one of", []string{entry("a 1-1", plainV), "a 2-1", entry("b 1-1", plainV)}, "b-1-1.x86_64"},
		{"none whose place another takes", []string{entry("a 1-1", plainV), entry("b 1-1", plainV) + `<rpm:obsoletes><rpm:entry name="a" flags="LT" epoch="0" ver="2"/></rpm:obsoletes>`}, "b-1-1.x86_64"},
		{"a later one whose place none takes", []string{entry("a 3-1", plainV), entry("b 1-1", plainV) + `<rpm:obsoletes><rpm:entry name="a" flags="LT" epoch="0" ver="2"/></rpm:obsoletes>`}, "a-3-1.x86_64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := memory{}
			r := m.repository(t, "https://a.test", "gz", map[string]string{"primary": primaryOf(append(c.packages, `wants 1-1; <rpm:requires><rpm:entry name="v"/></rpm:requires>`)...)})
			read, err := Read(t.Context(), m, []Repository{r}, options)
			if err != nil {
				t.Fatal(err)
			}
			u, _, err := read.Universe()
			if err != nil {
				t.Fatal(err)
			}
			s, err := u.Solve(t.Context(), packaging.Request{Want: read.Want("wants")})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{c.want, "wants-1-1.x86_64"}, nevras(s.Add)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestWantInsteadOf has a package take the place of the one that is wanted.
func TestWantInsteadOf(t *testing.T) {
	m := memory{}
	r := m.repository(t, "https://a.test", "gz", map[string]string{"primary": primaryOf("ntp 4-1",
		`chrony 1-1; <rpm:obsoletes><rpm:entry name="ntp" flags="LT" epoch="0" ver="5"/></rpm:obsoletes>`, "chrony 2-1")})
	read, err := Read(t.Context(), m, []Repository{r}, options)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"ntp | chrony (= 1-1)", "nothing"}, lines(read.Want("ntp", "nothing"))); d != "" {
		t.Error(d)
	}
	u, _, err := read.Universe()
	if err != nil {
		t.Fatal(err)
	}
	var unknown *packaging.UnknownError
	if _, err := u.Solve(t.Context(), packaging.Request{Want: read.Want("ntpd")}); !errors.As(err, &unknown) || unknown.Error() != "no repository has the package ntpd; available: ntp" {
		t.Error(err)
	}
}

// TestWantByName has others provide the name of a package, and a name that none has.
func TestWantByName(t *testing.T) {
	m := memory{}
	provides := func(name string) string {
		return `; <rpm:provides><rpm:entry name="` + name + `" flags="EQ" epoch="0" ver="7"/></rpm:provides>`
	}
	r := m.repository(t, "https://a.test", "gz", map[string]string{"primary": primaryOf("kernel 4-1", "kernel-core 4-1"+provides("kernel"), "a-kernel 4-1"+provides("kernel"), "ntpd 1-1"+provides("timedaemon"))})
	read, err := Read(t.Context(), m, []Repository{r}, options)
	if err != nil {
		t.Fatal(err)
	}
	u, _, err := read.Universe()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"kernel": "kernel-4-1.x86_64", "timedaemon": "ntpd-1-1.x86_64"} {
		s, err := u.Solve(t.Context(), packaging.Request{Want: read.Want(name)})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{want}, nevras(s.Add)); d != "" {
			t.Error(d)
		}
	}
}

// TestBaseList looks whether each line of the list of base packages says what and why.
func TestBaseList(t *testing.T) {
	all, err := readBase()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, line := range all {
		if len(line.Any) == 0 || line.Why == "" {
			t.Errorf("%+v", line)
		}
		for _, name := range line.Any {
			if seen[name] || !plain(name) {
				t.Errorf("%s is listed twice, or is no name", name)
			}
			seen[name] = true
		}
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// TestEffects tells what every scenario of the table shows, twice: a second making has
// other keys and other times, and must be told alike. It prints what is due; that
// something is due is no fault, see `make scenarios`.
func TestEffects(t *testing.T) {
	all, err := readTable(root)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	stamps, err := stampsOf(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	first, err := effects(root, all, teller(t.Context(), root, all), stamps)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("told in %.1f s", time.Since(begin).Seconds())
	second, err := effects(root, all, func(m made) (lines []string, err error) {
		synctest.Test(t, func(t *testing.T) { lines = tellOn(t, root, m) })
		return lines, nil
	}, stamps)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Scenarios {
		if d := cmp.Diff(first[s.Name].lines, second[s.Name].lines); d != "" {
			t.Errorf("%s is told in two ways:\n%s", s.Name, d)
		}
		if first[s.Name].Sum != second[s.Name].Sum {
			t.Errorf("%s has two effects", s.Name)
		}
	}
	r, err := readRecord(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range standings(all, first, r) {
		t.Logf("%s: %s %s", x.Name, x.state, strings.Join(x.why, ", "))
	}
}

// TestTable: every test of the table exists, and runs by itself alone; what was
// shown is in the table.
func TestTable(t *testing.T) {
	all, err := readTable(root)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "testdata/e2e/*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	source := ""
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		source += string(b)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	labs, err := os.ReadFile(filepath.Join(root, "testdata/lab/lab.mk"))
	if err != nil {
		t.Fatal(err)
	}
	targets := slices.Concat(makefile, labs)
	m := regexp.MustCompile(`(?m)^ALONE +:= (.*)$`).FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile sets no ALONE")
	}
	alone := regexp.MustCompile(strings.ReplaceAll(string(m[1]), "$$", "$"))
	for _, s := range all.Scenarios {
		pattern := regexp.MustCompile(strings.Split(s.pattern(), "/")[0])
		for _, name := range s.Tests {
			if !strings.Contains(source, "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("%s: there is no test %s", s.Name, name)
			}
			if !alone.MatchString(name) {
				t.Errorf("%s: the Makefile's ALONE does not name %s: it would run beside all others", s.Name, name)
			}
			if !pattern.MatchString(name) {
				t.Errorf("%s: %s does not pick %s", s.Name, s.pattern(), name)
			}
		}
		for _, line := range s.Lines { // one that the test writes too
			if !strings.Contains(strings.ReplaceAll(source, `\"`, `"`), line) {
				t.Errorf("%s: no test writes %q into the config", s.Name, line)
			}
		}
		if s.Prepare != "" && !regexp.MustCompile(`(?m)^`+s.Prepare+`:`).Match(targets) {
			t.Errorf("%s: neither the Makefile nor lab.mk has a target %s", s.Name, s.Prepare)
		}
	}
	r, err := readRecord(root)
	if err != nil {
		t.Fatal(err)
	}
	for name := range r {
		if _, err := all.find(name); err != nil {
			t.Errorf("%s: %v", shownFile, err)
		}
	}
}

// TestAnEffectIsItsOwn: what the walk does too is none of a scenario's effect; what
// it does beyond that is, and so are the other parts.
func TestAnEffectIsItsOwn(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config.yaml", "config")
	write("x_test.go", "test")
	write("covered/a.go", "source")
	write("covered/a_test.go", "its test")
	all := &table{Walk: []made{{Config: "walk"}}, Scenarios: []scenario{{Name: "x", made: made{Config: "config.yaml"}, Files: []string{"x_test.go"}, Covers: []string{"covered"}}}}
	lines := map[string][]string{"walk": {"engine", "flannel"}, "config.yaml": {"engine", "flannel", "calico"}}
	reckon := func() effect {
		t.Helper()
		got, err := effects(dir, all, func(m made) ([]string, error) { return lines[m.Config], nil }, nil)
		if err != nil {
			t.Fatal(err)
		}
		return got["x"]
	}
	base := reckon()
	was := shown{Effect: base.Sum, Parts: base.Parts}
	for _, c := range []struct {
		name   string
		change func()
		due    string
	}{
		{"what both do changes", func() { lines["walk"][0], lines["config.yaml"][0] = "engine 2", "engine 2" }, ""},
		{"a test of what it covers changes", func() { write("covered/a_test.go", "another") }, ""},
		{"the order changes", func() { lines["config.yaml"][1] = "create flannel after engine" }, "the order of its steps"},
		{"the order is the walk's", func() { lines["walk"][1] = "create flannel after engine" }, ""},
		{"what it alone does changes", func() { lines["config.yaml"][2] = "calico 2" }, "what it does to hosts"},
		{"its test changes", func() { write("x_test.go", "another") }, "what it does to hosts, its test"},
		{"the source changes that it covers", func() { write("covered/a.go", "another") }, "what it does to hosts, its test, the source that it covers"},
	} {
		c.change()
		e := reckon()
		if got := strings.Join(e.changed(was), ", "); got != c.due || (e.Sum == base.Sum) != (c.due == "") {
			t.Errorf("%s: changed is %q, want %q", c.name, got, c.due)
		}
	}
	other := newEffect(base.lines, []string{"another component"}, nil, nil)
	if !slices.Contains(other.changed(was), "the lab's components") {
		t.Error("another component changes nothing")
	}
}

// TestConfigsAreChanged: lines are replaced where they are, and one that is not there
// is said.
func TestConfigsAreChanged(t *testing.T) {
	m := made{Config: "testdata/e2e/testdata/masters.yaml", Lines: map[string]string{"etcd:": "etcd: {type: kubeadm}"}}
	text, err := m.text(root)
	if err != nil || !strings.Contains(text, "\n  etcd: {type: kubeadm}\n") || strings.Contains(text, "heartbeatInterval") {
		t.Errorf("%v\n%s", err, text)
	}
	m.Lines = map[string]string{"nothing:": "x"}
	if _, err := m.text(root); err == nil || !strings.Contains(fmt.Sprint(err), `no line begins with "nothing:"`) {
		t.Errorf("%v", err)
	}
}

// TestCommentsDoNotCount holds which changes of a Go file make a scenario due.
func TestCommentsDoNotCount(t *testing.T) {
	const was = "//go:build linux\n\npackage a\n\n// b is one.\nfunc b() string { return \"one\" } // at once\n"
	for name, c := range map[string]struct {
		source string
		counts bool
	}{
		"another comment": {"//go:build linux\n\npackage a\n\n// b returns one.\nfunc b() string { return \"one\" }\n", false},
		"another layout":  {"//go:build linux\n\npackage a\n\nfunc b() string {\n\treturn \"one\"\n}\n", false},
		"another text":    {"//go:build linux\n\npackage a\n\nfunc b() string { return \"two\" }\n", true},
		"another system":  {"//go:build !linux\n\npackage a\n\nfunc b() string { return \"one\" }\n", true},
		"another code":    {"//go:build linux\n\npackage a\n\nfunc b() (s string) { return \"one\" }\n", true},
	} {
		if got := string(withoutComments([]byte(c.source))) != string(withoutComments([]byte(was))); got != c.counts {
			t.Errorf("%s counts: %v, want %v", name, got, c.counts)
		}
	}
}

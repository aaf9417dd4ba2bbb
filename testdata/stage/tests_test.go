package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// toy writes a module with one package of tests into a folder.
func toy(t *testing.T, tests string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module toy\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "toy.go"), "package toy\n")
	write(t, filepath.Join(dir, "toy_test.go"), "package toy\n\n"+tests)
	return dir
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// once is a test of a toy that fails the first time that it runs.
const once = `func first(t *testing.T) bool {
	if _, err := os.Stat("ran-" + t.Name()); err == nil {
		return false
	}
	if err := os.WriteFile("ran-"+t.Name(), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return true
}
`

func TestColours(t *testing.T) {
	good := "func TestGood(t *testing.T) { t.Log(\"nobody reads this\") }\n"
	plain := "import \"testing\"\n\n"
	withOS := "import (\n\"os\"\n\"testing\"\n)\n\n"
	for _, c := range []struct {
		name    string
		tests   string
		args    []string
		mustRun []string
		once    bool
		code    int
		flakes  string
		ran     string
		before  string   // what earlier stages wrote of tests that ran
		want    []string // in the output
		never   []string
	}{
		{name: "green", tests: plain + good, mustRun: []string{"TestGood"}, ran: "TestGood\n",
			want: []string{"ok  \ttoy\t"}, never: []string{"nobody reads", "=== RUN", "PASS"}},
		{name: "red", tests: plain + good + "func TestBad(t *testing.T) {\nt.Run(\"sub\", func(t *testing.T) { t.Error(\"it is broken\") })\n}\n", code: 1,
			want:  []string{"toy_test.go:7: it is broken", "--- FAIL: TestBad/sub", "FAIL\ttoy\t", "RED TestBad (toy) failed twice"},
			never: []string{"nobody reads", "=== RUN"}},
		{name: "flaky", tests: withOS + good + once + "func TestNow(t *testing.T) { if first(t) { t.Error(\"not yet\") } }\n",
			flakes: "TestNow (toy)\n", want: []string{"not yet", "FLAKY TestNow (toy)"}, never: []string{"RED"}},
		{name: "flaky with a flag of the test's own", tests: "import (\n\"flag\"\n\"os\"\n\"testing\"\n)\n\nvar deep = flag.Bool(\"deep\", false, \"\")\n" + once +
			"func TestNow(t *testing.T) { if first(t) || !*deep { t.Error(\"not yet\") } }\n", args: []string{"-run=Now|Else", "-count=2", ".", "-deep"},
			flakes: "TestNow (toy)\n", want: []string{"FLAKY TestNow (toy)"}, never: []string{"RED"}},
		{name: "flaky, and must run", tests: withOS + once + "func TestNow(t *testing.T) { if first(t) { t.Error(\"not yet\") } }\n", mustRun: []string{"TestNow"},
			flakes: "TestNow (toy)\n", ran: "TestNow\n", want: []string{"FLAKY TestNow (toy)"}, never: []string{"RED"}},
		{name: "flaky, and not to be run again", tests: withOS + good + once + "func TestNow(t *testing.T) { if first(t) { t.Error(\"not yet\") } }\n", once: true, code: 1,
			want: []string{"not yet", "RED TestNow (toy) failed"}, never: []string{"FLAKY", "once more"}},
		{name: "panic is not run again", tests: withOS + once + "func TestNow(t *testing.T) { if first(t) { panic(\"a slip\") } }\n", code: 1,
			want: []string{"panic: a slip", "RED TestNow (toy) panicked"}, never: []string{"FLAKY", "once more"}},
		{name: "panic of another goroutine is not run again", tests: withOS + once + "func TestNow(t *testing.T) { if first(t) { go panic(\"a slip\"); select {} } }\n", code: 1,
			want: []string{"panic: a slip", "RED "}, never: []string{"FLAKY", "once more"}},
		{name: "race is not run again", tests: withOS + once + "func TestNow(t *testing.T) {\nif !first(t) { return }\nn, done := 0, make(chan bool)\ngo func() { n++; close(done) }()\nn++\n<-done\n}\n",
			args: []string{"-race", "."}, code: 1, want: []string{"WARNING: DATA RACE", "RED toy: a data race"}, never: []string{"FLAKY", "once more"}},
		{name: "race beside a flaky test", tests: withOS + once + "func TestNow(t *testing.T) {\nn, done := 0, make(chan bool)\ngo func() { n++; close(done) }()\nn++\n<-done\n}\n" +
			"func TestThen(t *testing.T) { if first(t) { t.Error(\"not yet\") } }\n",
			args: []string{"-race", "."}, code: 1, want: []string{"RED toy: a data race", "RED TestThen (toy) failed"}, never: []string{"FLAKY", "once more"}},
		{name: "timeout is not run again", tests: "import (\n\"os\"\n\"testing\"\n\"time\"\n)\n\n" + once + "func TestNow(t *testing.T) { if first(t) { time.Sleep(time.Minute) } }\n",
			args: []string{"-timeout=1s", "."}, code: 1, want: []string{"test timed out after 1s", "RED TestNow (toy) was running when the tests timed out after 1s"}, never: []string{"FLAKY", "once more", "none of its tests"}},
		{name: "timeout after another test has passed", tests: "import (\n\"os\"\n\"testing\"\n\"time\"\n)\n\n" + once + "func TestNow(t *testing.T) { t.Parallel(); if first(t) { time.Sleep(time.Minute) } }\n" +
			"func TestThen(t *testing.T) { t.Parallel() }\n", args: []string{"-timeout=1s", "-parallel=2", "."}, code: 1,
			want: []string{"test timed out after 1s", "RED TestNow (toy) was running when the tests timed out after 1s"}, never: []string{"none of its tests"}},
		{name: "an exit is not run again", tests: withOS + once + "func TestNow(t *testing.T) { if first(t) { os.Exit(3) } }\n", code: 1,
			want: []string{"FAIL\ttoy\t", "RED toy failed, and none of its tests"}, never: []string{"FLAKY", "once more"}},
		{name: "does not build", tests: plain + "func TestNow(t *testing.T) { absent() }\n", code: 1,
			want: []string{"undefined: absent", "FAIL\ttoy [build failed]", "RED toy does not build"}},
		{name: "too many to run again", tests: withOS + once + "func TestA(t *testing.T) { if first(t) { t.Error(1) } }\n" + "func TestB(t *testing.T) { if first(t) { t.Error(1) } }\n" +
			"func TestC(t *testing.T) { if first(t) { t.Error(1) } }\n" + "func TestD(t *testing.T) { if first(t) { t.Error(1) } }\n" +
			"func TestE(t *testing.T) { if first(t) { t.Error(1) } }\n" + "func TestF(t *testing.T) { if first(t) { t.Error(1) } }\n", code: 1,
			want: []string{"RED 6 tests failed, too many"}, never: []string{"FLAKY", "once more"}},
		{name: "skipped", tests: plain + good + "func TestTool(t *testing.T) { t.Log(\"looking\"); t.Skip(\"no tool here\") }\n", mustRun: []string{"TestTo", "TestElsewhere"},
			want: []string{"skipped: no tool here: TestTool\n"}, never: []string{"RED"}},
		{name: "skipped though it must run", tests: plain + good + "func TestTool(t *testing.T) { t.Skip(\"no tool here\") }\n", mustRun: []string{"TestGood", "TestTool"}, code: 1, ran: "TestGood\n",
			want: []string{"RED TestTool (toy) was skipped and must run here: no tool here"}},
		{name: "skipped in a later stage", tests: plain + good + "func TestTool(t *testing.T) { t.Skip(\"no tool here\") }\n", mustRun: []string{"TestTool"}, before: "TestTool\n", ran: "TestTool\n",
			want: []string{"skipped: no tool here: TestTool\n"}, never: []string{"RED"}},
		{name: "skipped the second time", tests: withOS + once + "func TestNow(t *testing.T) { if first(t) { t.Error(1) }\nt.Skip(\"tired\") }\n", code: 1,
			want: []string{"RED TestNow (toy) failed twice"}, never: []string{"FLAKY"}},
		{name: "no packages", args: []string{"-race"}, code: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := toy(t, c.tests)
			notes := Notes{Flakes: filepath.Join(dir, "flakes"), Ran: filepath.Join(dir, "ran")}
			if c.args == nil {
				c.args = []string{"."}
			}
			write(t, notes.Ran, c.before)
			var out, stderr bytes.Buffer
			code, err := Tests{Args: c.args, Once: c.once, Dir: dir, MustRun: c.mustRun, Notes: notes, Out: &out, Err: &stderr}.Run(t.Context())
			if code != c.code || (err != nil) != (c.code == 2) {
				t.Errorf("exit code %d, %v; want %d\n%s", code, err, c.code, out.String())
			}
			for _, w := range c.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("the output lacks %q:\n%s", w, out.String())
				}
			}
			for _, n := range c.never {
				if strings.Contains(out.String(), n) {
					t.Errorf("the output has %q:\n%s", n, out.String())
				}
			}
			for name, want := range map[string]string{notes.Flakes: c.flakes, notes.Ran: c.ran} {
				if got, _ := os.ReadFile(name); string(got) != want {
					t.Errorf("%s holds %q, want %q", filepath.Base(name), got, want)
				}
			}
		})
	}
}

// TestCached: a result from Go's cache is told like a new one, skips included.
func TestCached(t *testing.T) {
	dir := toy(t, "import \"testing\"\n\nfunc TestTool(t *testing.T) { t.Skip(\"no tool here\") }\n")
	for _, want := range []string{"ok  \ttoy\t", "(cached)"} {
		var out, stderr bytes.Buffer
		code, err := Tests{Args: []string{"."}, Dir: dir, MustRun: []string{"TestTool"}, Out: &out, Err: &stderr}.Run(t.Context())
		if code != 1 || err != nil || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "RED TestTool (toy) was skipped") {
			t.Errorf("exit code %d, %v, want 1 and %q:\n%s", code, err, want, out.String())
		}
	}
}

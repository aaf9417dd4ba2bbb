package installer

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const about = `{"head":{"run":"R1","pipeline":"create","config":"c","root":"r","plan":"p","kubexm":"v1"}}` + "\n"

func line(node, outcome string) string {
	return `{"node":"` + node + `","host":"m","outcome":"` + outcome + `"}` + "\n"
}

// TestAJournalSaysWhatWasSeenDone: the last word on a step counts, a torn line at
// the end is none, and anything else that makes no sense voids all of it.
func TestAJournalSaysWhatWasSeenDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want, err string }{
		{"done", about + line("a", "started") + line("a", "ran") + line("b", "already done") + line("c", "resumed"), "a@m b@m c@m", ""},
		{"begun", about + line("a", "started"), "", ""},
		{"failed", about + line("a", "ran") + line("a", "started") + line("a", "failed"), "", ""},
		{"taken back", about + line("a", "ran") + line("a", "rolled back"), "", ""},
		{"a wait", about + line("a", "checked"), "", ""},
		{"torn", about + line("a", "ran") + `{"node":"b","host":"m","outco`, "a@m", ""},
		{"torn where it reads well", about + strings.TrimSuffix(line("a", "ran"), "\n"), "", ""},
		{"no head", line("a", "ran"), "", "does not describe a run"},
		{"nothing", "", "", "empty"},
		{"rubbish", about + "rubbish\n" + line("a", "ran"), "", "line 2"},
	} {
		head, done, err := readJournal([]byte(c.text))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if got := strings.Join(slices.Sorted(maps.Keys(done)), " "); err != nil || got != c.want || head.Run != "R1" {
			t.Errorf("%s: %q, %v, %v", c.name, got, head, err)
		}
	}
}

// TestTheLastRunCounts, and dry runs are none: they changed nothing.
func TestTheLastRunCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, run, more string) {
		text := strings.Replace(about, `"R1"`, `"`+run+`"`, 1)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Replace(text, `}}`, more+`}}`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := func(run string) {
		t.Helper()
		path, head, _, err := lastRun(dir)
		if err != nil || head.Run != run || (path == "") != (run == "") {
			t.Errorf("%s: %v, %v, want %q", path, head, err, run)
		}
	}
	want("")
	write("2026-01-01T10-00-00.jsonl", "first", "")
	want("first")
	write("2026-01-01T10-00-00-2.jsonl", "second", "")
	write("2026-01-01T10-00-00-10.jsonl", "tenth", "")
	want("tenth")
	write("2026-01-01T10-00-05.jsonl", "looked", `,"dryRun":true`)
	want("tenth")
	write("2026-01-01T10-00-06.jsonl", "newest", "")
	want("newest")
}

func TestARunThatIsAnother(t *testing.T) {
	t.Parallel()
	head := Head{Run: "R2", Pipeline: "create", Config: "c", Root: "r", Plan: "p", Kubexm: "v1"}
	for want, change := range map[string]func(*Head){
		"":                               func(h *Head) { h.Run = "R3" },
		"the last run was a delete":      func(h *Head) { h.Pipeline = "delete" },
		"the config has changed":         func(h *Head) { h.Config = "d" },
		"the bundle has changed":         func(h *Head) { h.Root = "s" },
		"kubexm or its plan has changed": func(h *Head) { h.Kubexm = "v2" },
	} {
		before := head
		change(&before)
		if got := head.differs(before); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestARunThatLeftOutOtherChecks is another run.
func TestARunThatLeftOutOtherChecks(t *testing.T) {
	t.Parallel()
	head, _, err := readJournal([]byte(strings.Replace(about, `}}`, `,"skipped":["preflight.memory"]}}`, 1)))
	if err != nil || len(head.Skipped) != 1 {
		t.Fatalf("%+v, %v", head, err)
	}
	again := head
	if why := again.differs(head); why != "" {
		t.Errorf("the same differs: %s", why)
	}
	again.Skipped = nil
	if why := again.differs(head); why != "the last run skipped other checks" {
		t.Errorf("without the same checks left out: %q", why)
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// makefile has a target per behaviour. In test's shell $$ is the shell's own process.
const makefile = `good:
	@echo did good
bad:
	@echo did bad; exit 3
flaky:
	@echo "TestNow (toy)" >> $$STAGE_FLAKES
ran:
	@echo "TestLab" >> $$STAGE_RAN
deadline:
	@echo "$$STAGE_DEADLINE" > deadline
slow:
	@sleep 1.2
hang:
	@sh -c 'echo $$$$ > child; exec sleep 600' & sleep 600
`

func runIn(t *testing.T, mustRun []string, stages ...Stage) (dir, out string, code int, r Report, err error) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "Makefile"), makefile)
	var b bytes.Buffer
	code, err = Runner{Table: Table{Deadline: 4200, Stages: stages}, Dir: dir, MustRun: mustRun, Out: &b, Err: &b}.Run(t.Context())
	written, readErr := os.ReadFile(filepath.Join(dir, "build/stages.json"))
	if readErr != nil {
		t.Fatal(readErr)
	}
	if err := json.Unmarshal(written, &r); err != nil {
		t.Fatal(err)
	}
	return dir, b.String(), code, r, err
}

func results(r Report) (out []string) {
	for _, s := range r.Stages {
		out = append(out, s.Name+": "+s.Result)
	}
	return out
}

func of(make string, warm Seconds) Stage {
	return Stage{Name: make, Level: "A", Make: make, Warm: warm, Cold: 100}
}

func TestStagesEndAtTheFirstFailure(t *testing.T) {
	_, out, code, r, err := runIn(t, nil, of("good", 60), of("bad", 60), of("slow", 60))
	if code != 2 || err != nil { // make ends with 2 for whatever its target ended with
		t.Errorf("exit code %d, %v, want 2", code, err)
	}
	if diff := cmp.Diff([]string{"good: passed", "bad: failed", "slow: not run"}, results(r)); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{"== good (budget 60 s)\ndid good\n== good: passed after 0 s\n== bad (budget 60 s)\ndid bad\n", "not run"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

func TestOverBudgetWarns(t *testing.T) {
	_, out, code, r, err := runIn(t, nil, of("slow", 1), of("good", 1))
	if code != 0 || err != nil || r.Stages[0].Seconds < 1 {
		t.Errorf("exit code %d, %v, %.1f s\n%s", code, err, r.Stages[0].Seconds, out)
	}
	if strings.Count(out, "OVER") != 1 {
		t.Errorf("want one line with OVER:\n%s", out)
	}
}

func TestFlakesAreNamedLast(t *testing.T) {
	_, out, code, r, err := runIn(t, nil, of("flaky", 60), of("good", 60))
	if code != 0 || err != nil || !strings.HasSuffix(out, "\nFLAKY TestNow (toy)\n") {
		t.Errorf("exit code %d, %v\n%s", code, err, out)
	}
	if diff := cmp.Diff([]string{"TestNow (toy)"}, r.Flakes); diff != "" {
		t.Error(diff)
	}
}

// TestEveryoneRan: what must run is missed if it runs in no stage at all.
func TestEveryoneRan(t *testing.T) {
	if _, out, code, _, err := runIn(t, []string{"TestLab"}, of("ran", 60)); code != 0 || err != nil {
		t.Errorf("exit code %d, %v\n%s", code, err, out)
	}
	_, _, code, _, err := runIn(t, []string{"TestLab", "TestRPM"}, of("ran", 60))
	if code != 1 || err == nil || !strings.Contains(err.Error(), "no stage ran TestRPM,") {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestDeadlineIsHandedDown(t *testing.T) {
	before := time.Now()
	dir, _, _, _, err := runIn(t, nil, of("deadline", 60))
	b, readErr := os.ReadFile(filepath.Join(dir, "deadline"))
	if err != nil || readErr != nil {
		t.Fatal(err, readErr)
	}
	got, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if early, late := before.Unix()+4200, time.Now().Unix()+4200; err != nil || got < early || got > late {
		t.Errorf("the deadline is %q (%v), want %d to %d", b, err, early, late)
	}
}

// TestInterrupt: a signal ends the stage with everything that it has started, and
// the summary comes all the same.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	var wait sync.WaitGroup
	dir := t.TempDir()
	write(t, filepath.Join(dir, "Makefile"), makefile)
	child := filepath.Join(dir, "child")
	wait.Go(func() {
		for ctx.Err() == nil {
			if b, err := os.ReadFile(child); err == nil && len(b) > 1 {
				cancel(interrupted{syscall.SIGINT})
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	// A file, as the terminal is: nobody waits for who holds the other end of a pipe.
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	code, err := Runner{Table: Table{Deadline: 1, Stages: []Stage{of("hang", 60), of("good", 60)}}, Dir: dir, Out: out, Err: out}.Run(ctx)
	wait.Wait()
	if code != 130 || err != nil {
		t.Errorf("exit code %d, %v, want 130", code, err)
	}
	printed, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	if s := string(printed); !strings.Contains(s, "interrupted") || !strings.Contains(s, "not run") || strings.Contains(s, "did good") {
		t.Errorf("the summary is not whole:\n%s", s)
	}
	b, err := os.ReadFile(child)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Errorf("process %d of the stage is still there", pid)
	}
}

// gone waits until a process has ended. One that nobody has waited for yet counts.
func gone(pid int) bool {
	for range 1000 {
		stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return syscall.Kill(pid, 0) != nil || err == nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func TestTable(t *testing.T) {
	if _, err := ReadTable("stages.yaml"); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct{ yaml, want string }{
		"unknown field": {"deadline: 1\nstages: [{name: a, level: A, make: a, warm: 1, cold: 1, more: 1}]", "field more not found"},
		"no budget":     {"deadline: 1\nstages: [{name: a, level: A, make: a}]", "warm and cold are required"},
		"level":         {"deadline: 1\nstages: [{name: a, level: X, make: a, warm: 1, cold: 1}]", `level "X" is not one of A to F`},
		"twice":         {"deadline: 1\nstages: [{name: a, level: A, make: a, warm: 1, cold: 1}, {name: a, level: A, make: a, warm: 1, cold: 1}]", "two stages have the name a"},
		"no deadline":   {"stages: [{name: a, level: A, make: a, warm: 1, cold: 1}]", "a table has a deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stages.yaml")
			write(t, file, c.yaml)
			if _, err := ReadTable(file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestOnlySomeLevels(t *testing.T) {
	table := Table{Deadline: 7, Stages: []Stage{{Name: "a", Level: "A"}, {Name: "b", Level: "B"}, {Name: "c", Level: "C"}, {Name: "d", Level: "B"}}}
	got, err := table.Only("CB")
	want := Table{Deadline: 7, Stages: []Stage{{Name: "b", Level: "B"}, {Name: "c", Level: "C"}, {Name: "d", Level: "B"}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := table.Only("F"); err == nil || err.Error() != `no stage has a level of "F"` {
		t.Errorf("got %v", err)
	}
}

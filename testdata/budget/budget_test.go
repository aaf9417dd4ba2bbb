package budget_test

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write budget.json")

// budget is what kubexm takes.
type budget struct {
	Modules int   `json:"modules"` // beside its own, of the program for linux/amd64
	Bytes   int64 `json:"bytes"`   // of that program, without symbols
}

func measure(t *testing.T) budget {
	t.Helper()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	to := filepath.Join(t.TempDir(), "kubexm")
	run("build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", to, "./cmd/kubexm")
	i, err := os.Stat(to)
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(run("list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/kubexm"))
	slices.Sort(modules)
	return budget{Modules: len(slices.Compact(modules)), Bytes: i.Size()}
}

// over tells what of now is more than a twentieth over what is on record.
func over(record, now budget) []string {
	var out []string
	if now.Modules*20 > record.Modules*21 {
		out = append(out, "modules")
	}
	if now.Bytes*20 > record.Bytes*21 {
		out = append(out, "bytes")
	}
	return out
}

// TestBudget measures the program.
func TestBudget(t *testing.T) {
	now := measure(t)
	t.Logf("%d modules, %.1f MB", now.Modules, float64(now.Bytes)/1e6)
	if *update {
		text, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("budget.json", append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("budget.json")
	if err != nil {
		t.Fatal(err)
	}
	var record budget
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	if much := over(record, now); len(much) > 0 {
		t.Errorf("%+v is over a twentieth more than %+v in %v: do with less, or record it by make budget and say why", now, record, much)
	}
}

func TestOver(t *testing.T) {
	record := budget{Modules: 100, Bytes: 1000}
	for _, c := range []struct {
		now  budget
		want string
	}{
		{budget{100, 1000}, ""}, {budget{105, 1050}, ""}, {budget{1, 1}, ""},
		{budget{106, 1000}, "modules"}, {budget{100, 1051}, "bytes"}, {budget{200, 2000}, "modules bytes"},
	} {
		if got := strings.Join(over(record, c.now), " "); got != c.want {
			t.Errorf("%+v: %q, want %q", c.now, got, c.want)
		}
	}
}

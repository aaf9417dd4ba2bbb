package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestPipelinesHaveCommands: each is asked for by its words. One that asks a person
// first ends without --yes, before a host is called, and says what it would do; its
// summary names it, though there is no plan yet.
func TestPipelinesHaveCommands(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(steptest.Small), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, p := range pipeline.All() {
		a := &app{env: func(string) (string, bool) { return "", false }}
		cmd, _, err := a.root().Find(p.Command)
		if want := "kubexm " + strings.Join(p.Command, " "); err != nil || cmd.CommandPath() != want || cmd.Short != p.Short {
			t.Errorf("%s: the command is %v (%v), want %s", p.Name, cmd, err, want)
		}
		if parent := cmd.Parent(); parent.Short == "" && parent.HasParent() {
			t.Errorf("%s: nobody says what %s is for", p.Name, parent.CommandPath())
		}
		if _, applies := pipeline.ExampleScope(p, steptest.Cluster(t, steptest.Small)); p.Confirmation == nil || !applies {
			continue
		}
		asked++
		args := append(slices.Clone(p.Command), "-f", config, "--workdir", dir, "-o", "json")
		if p.Args == plan.HostNames {
			args = append(args, "node1")
		}
		code, out, stderr := ran(t, args...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var last console.Line
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Summary == nil {
			t.Fatalf("%s: %v\n%s", p.Name, err, out)
		}
		if code != exitUsage || last.Summary.Pipeline != p.Name || !strings.Contains(stderr, p.Name+" of cluster demo "+p.Confirmation(steptest.Cluster(t, steptest.Small))) {
			t.Errorf("%s: exit code %d, summary of %q\n%s", p.Name, code, last.Summary.Pipeline, stderr)
		}
	}
	if asked < 3 { // delete, reset, hosts restore
		t.Errorf("%d pipelines ask", asked)
	}
}

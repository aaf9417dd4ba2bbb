package pipeline_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

var update = flag.Bool("update", false, "rewrite the plans in testdata/clusters")

// mostAlways is how many steps of a pipeline may have nothing to observe: each
// of them runs again in every run. create has the tokens and the certificate of health checks, which look first; delete
// has the drain. Checks are not counted: looking again is what they are for.
var mostAlways = map[string]int{"create": 3, "delete": 1, "reset": 0, "node-add": 3, "node-delete": 1, "preflight": 0, "prepare": 0, "restore": 0}

// TestPlansOfClusters compares the plans of every pipeline for the configs in
// testdata/clusters with the plans that stand there.
func TestPlansOfClusters(t *testing.T) {
	files, err := filepath.Glob("../../testdata/clusters/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c, problems := manifest.Decode(bytes.NewReader(a.Files[0].Data))
			if err := problems.Err(); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for _, f := range a.Files[1:] {
				want[f.Name] = string(f.Data)
			}
			a.Files = a.Files[:1]
			for _, p := range pipeline.All() {
				scope, ok := pipeline.ExampleScope(p, c)
				if !ok {
					continue
				}
				g, err := plan.Build(p, scope)
				if err != nil {
					t.Fatal(err)
				}
				check(t, g)
				name := p.Name + ".plan"
				a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(g.String())})
				if d := cmp.Diff(want[name], g.String()); d != "" && !*update {
					t.Errorf("%s is another (-want +got); go test ./installer/pipeline -update takes it over:\n%s", name, d)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// check holds every step of a plan to what the engine and people rely on.
func check(t *testing.T, g *plan.Graph) {
	t.Helper()
	var names, always []string
	for _, n := range g.Nodes {
		m := n.Step.Meta()
		_, visited, _ := strings.Cut(n.ID, "[") // of a rolling change: once for each host
		if m.ReadOnly && !m.Always {            // a gate may stand in several tasks
			visited = n.ID
		}
		if slices.Contains(names, m.Name+visited) {
			t.Errorf("%s: two steps are called %s", g.Name, m.Name)
		}
		names = append(names, m.Name+visited)
		if domain, verb, ok := strings.Cut(m.Name, "."); !ok || domain == "" || verb == "" {
			t.Errorf("%s is no domain.verb-object", m.Name)
		}
		// A list of resources is bounded by the engine's own timeout; whatever else
		// a step does, it knows best how long that may take.
		if _, list := n.Step.(steps.Differ); !list && m.Timeout <= 0 {
			t.Errorf("%s has no timeout", m.Name)
		}
		if m.Always && !m.ReadOnly && !slices.Contains(always, m.Name) {
			always = append(always, m.Name)
		}
		for _, need := range m.Needs {
			if need.Set != "" {
				t.Errorf("%s needs %s of one set: the plan's scope picks it", m.Name, need.Name)
			}
		}
		if g.Confirmation == nil && g.Deletes && m.Risk == steps.Destroys {
			t.Errorf("%s destroys something, and %s asks before its plan is known: it has to state what", m.Name, g.Name)
		}
	}
	if len(always) > mostAlways[g.Name] {
		t.Errorf("%s has %d steps that always run (%s), at most %d are known", g.Name, len(always), strings.Join(always, ", "), mostAlways[g.Name])
	}
}

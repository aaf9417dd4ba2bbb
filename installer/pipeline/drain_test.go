package pipeline_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// TestPlansWithDrains compares the plans of restarts that drain nodes, and holds those of all
// clusters to the rules of plans.
func TestPlansWithDrains(t *testing.T) {
	files, err := filepath.Glob("../../testdata/clusters/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, problems := manifest.Decode(bytes.NewReader(a.Files[0].Data))
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		for _, p := range pipeline.All() {
			if p.Membership != plan.KeepsHosts {
				continue // they always drain, or never
			}
			scope := pipeline.ScopeOf(p, c, nil)
			scope.Drain, scope.Batch = plan.Drain{Requested: true}, plan.Batch{Size: 2}
			g, err := plan.Build(p, scope)
			if err != nil {
				t.Fatal(err)
			}
			check(t, g)
			text := g.String()
			drains := strings.Count(text, "kubernetes.drain-node[") > 0
			if drains != (p.Drains == plan.DrainOnRequest) {
				t.Errorf("%s, %s: drains nodes: %t", filepath.Base(file), p.Name, drains)
			}
			if filepath.Base(file) != "site.txtar" || p.Name != "restart-all" {
				continue
			}
			golden := filepath.Join("testdata", "drained.plan")
			if *update {
				if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), text); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		}
	}
}

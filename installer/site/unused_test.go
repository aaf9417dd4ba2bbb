package site

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/versions"
)

// TestNothingIsCarriedForNothing: whatever a bundle of a config that can be installed
// holds, some step opens.
func TestNothingIsCarriedForNothing(t *testing.T) {
	catalog, problems := versions.Load()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, pattern := range []string{"../../cmd/kubexm/starters/*.yaml", "../../testdata/clusters/*.txtar"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(file) == ".txtar" {
			text = txtar.Parse(text).Files[0].Data
		}
		c, problems := manifest.Decode(bytes.NewReader(text))
		if problems.Err() != nil || c.NotInstallable().Err() != nil {
			continue
		}
		lock, problems := catalog.Resolve(c)
		if problems.Err() != nil || addonsWithout(c, lock).Err() != nil {
			continue
		}
		var graphs []*plan.Graph
		for _, p := range pipeline.All() {
			g, err := plan.Build(p, plan.Scope{Want: c, Set: c.Spec.Kubernetes.Version})
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			graphs = append(graphs, g)
		}
		seen++
		if unused := plan.Unused(lock, c.Spec.Kubernetes.Version, graphs...); len(unused) > 0 {
			t.Errorf("%s: no plan needs %q", file, unused)
		}
	}
	if seen < 3 {
		t.Fatalf("%d configs that can be installed", seen)
	}
}

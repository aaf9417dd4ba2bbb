package pipeline_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// TestEveryCheckCanBeLeftOut: a check that --skip-checks takes the name of is not in the
// plan then, and all else is.
func TestEveryCheckCanBeLeftOut(t *testing.T) {
	files, err := filepath.Glob("../../testdata/clusters/*.txtar")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	left := map[string]int{}
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
			if p.Bundle == plan.BundleUnused {
				continue // it has no such flag
			}
			scope := plan.Scope{Want: c, Set: c.Spec.Kubernetes.Version}
			names, err := installer.ChecksOf(p, c)
			if err != nil {
				t.Fatal(err)
			}
			want := slices.DeleteFunc(stepsOf(t, p, scope), func(n string) bool {
				if slices.Contains(names, n) {
					left[n]++
					return true
				}
				return false
			})
			scope.Skip = names
			if got := stepsOf(t, p, scope); !slices.Equal(got, want) {
				t.Errorf("%s, %s: %v, want %v", filepath.Base(file), p.Name, got, want)
			}
		}
	}
	for _, name := range []string{"preflight.memory", "registryd.check-pull", "registryd.check-push", "etcd.check-external", "kubeadm.check-kept-store"} {
		if left[name] == 0 {
			t.Errorf("%s is in no plan: nothing was tried", name)
		}
	}
}

// stepsOf names the steps of a plan, one after another.
func stepsOf(t *testing.T, p plan.Pipeline, s plan.Scope) (names []string) {
	t.Helper()
	g, err := plan.Build(p, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range g.Nodes {
		names = append(names, n.Step.Meta().Name)
	}
	return names
}

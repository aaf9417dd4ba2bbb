package plan

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/testdata/fair"
)

// largePlan bounds a plan for a thousand workers that are visited one at a time, 15 steps
// each: what a person waits for before the first host is called.
const (
	largePlan  = time.Second
	largeBytes = 40 << 20 // of 200 that it may take with all that is made of it; a cost by the square is more
)

// TestLargeRollingPlan makes such a plan: its cost grows with its nodes and not with their
// square, also where each visit reads what one step at the beginning gave.
func TestLargeRollingPlan(t *testing.T) {
	token := steps.NewKey[string]("token")
	var workers []manifest.Host
	for i := range 1000 {
		workers = append(workers, manifest.Host{Name: fmt.Sprintf("w%d", i), Arch: "amd64"})
	}
	rolling := func(Scope) Fragment {
		visit := func(h manifest.Host) Fragment {
			var ss []steps.Step
			for i := range 15 {
				own := steps.NewKey[string](fmt.Sprintf("output %d", i))
				ss = append(ss, step{steps.Meta{Name: fmt.Sprintf("test.step-%d", i), Reads: []steps.AnyKey{token}, Writes: []steps.AnyKey{own}}})
			}
			back := func(h manifest.Host) Fragment {
				return On([]manifest.Host{h}, named("test.relink"), named("test.start"))
			}
			return Guarded(InSet("v2", On([]manifest.Host{h}, ss...)), back)
		}
		return Seq(On(workers[:1], step{steps.Meta{Name: "test.mint", Writes: []steps.AnyKey{token}}}), Roll(workers, visit))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	clock := fair.Start()
	g, err := Build(pipeline(task("t", rolling)), Scope{})
	took := clock.Took()
	runtime.ReadMemStats(&after)
	if err != nil || len(g.Nodes) != 15001 {
		t.Fatalf("%v, %d nodes", err, len(g.Nodes))
	}
	if text := g.String(); len(text) < 1<<20 {
		t.Errorf("its text has %d bytes", len(text))
	}
	bytes := after.TotalAlloc - before.TotalAlloc
	t.Logf("%s, %d MB", took, bytes>>20)
	if bytes > largeBytes {
		t.Errorf("the plan took %d MB, at most %d MB are allowed", bytes>>20, largeBytes>>20)
	}
	clock.Limit(t, took, largePlan)
}

package installer_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
)

// TestStartersMakeClusters: what `kubexm config init` writes is a cluster on simulated
// hosts, and goes again.
func TestStartersMakeClusters(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../cmd/kubexm/starters/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d starters, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				s := siteOf(t, string(text), file)
				for _, h := range s.Cluster.Spec.Hosts {
					if h.User != "root" {
						s.Sims[h.Name].AddUser(h.User, 1000)
					}
				}
				first := s.State(true)
				s.Must(pipeline.Preflight, "preflight")
				s.Must(pipeline.Create, "create")
				s.Must(pipeline.Create, "create again")
				if ran := s.ran(); len(ran) > 0 {
					t.Errorf("a second creation ran %q", ran)
				}
				s.Must(pipeline.Delete, "delete")
				s.Same("a deletion gives back what was there", first, s.State(true))
			})
		})
	}
}

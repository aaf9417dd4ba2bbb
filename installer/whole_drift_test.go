package installer_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
)

// TestNoDriftAfterCreate: what was just made is as its record says.
func TestNoDriftAfterCreate(t *testing.T) {
	for _, name := range []string{"site", "masters", "etcd-hosts", "addons", "no-registry"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, name)
				s.Must(pipeline.Create, "create")
				before := s.State(true)
				found, err := s.Drift()
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range found {
					t.Error(fmt.Sprintf("%+v", d))
				}
				s.Same("a look changes nothing", before, s.State(true))
			})
		})
	}
}

package node_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestEmptyRecordsGo, and no others.
func TestEmptyRecordsGo(t *testing.T) {
	const dir = "/var/lib/kubexm/demo"
	for name, c := range map[string]struct {
		before func(*conntest.Sim)
		stays  bool
	}{
		"empty":   {func(s *conntest.Sim) { s.AddDir(dir+"/before", 0o700) }, false},
		"records": {func(s *conntest.Sim) { s.AddFile(dir+"/before/x.json", "{}", 0o600) }, true},
		"others":  {func(s *conntest.Sim) { s.AddDir(dir+"/before", 0o700); s.AddFile(dir+"/packages/x", "", 0o600) }, true},
	} {
		kase := steptest.Case{Before: c.before}
		s := kase.Sim(t)
		step := node.ForgetNothing()
		if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
			t.Fatal(err)
		}
		if _, there := s.File(dir); there != c.stays {
			t.Errorf("%s: %s is there: %t", name, dir, there)
		}
	}
}

package node_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestWhatAServiceWroteGoes: files that came with its running go, and those that it
// had written before kubexm came stay.
func TestWhatAServiceWroteGoes(t *testing.T) {
	rs := []op.Resource{node.Traces{Of: "chrony.service", Paths: []string{"/var/lib/chrony/drift", "/var/lib/chrony/keys"}}}
	install, remove := op.Ensure("x.note", rs), op.Remove("x.give-back", rs)
	kase := steptest.Case{Before: func(s *conntest.Sim) { s.AddFile("/var/lib/chrony/keys", "old", 0o600) }}
	steptest.Ensure(t, kase, install, remove)

	s := kase.Sim(t)
	first := s.Snapshot()
	if err := install.Run(t.Context(), kase.NewHost(t, s, install)); err != nil {
		t.Fatal(err)
	}
	s.AddFile("/var/lib/chrony/drift", "1.2", 0o644)
	if err := remove.Run(t.Context(), kase.NewHost(t, s, remove)); err != nil {
		t.Fatal(err)
	}
	if d := conntest.Diff(first, s.Snapshot()); d != "" {
		t.Errorf("not what it was:\n%s", d)
	}
}

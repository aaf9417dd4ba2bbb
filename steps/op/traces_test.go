package op_test

import (
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestFilesOfAServiceAreRemoved: files that came with its running go, and those that it
// had written before kubexm came stay.
func TestFilesOfAServiceAreRemoved(t *testing.T) {
	rs := []op.Resource{op.Traces{Of: "chrony.service", Paths: []string{"/var/lib/chrony/drift", "/var/lib/chrony/keys"}, Trees: []string{"/run/chrony", "/etc/chrony"}}}
	install, remove := op.Ensure("x.note", rs), op.Remove("x.give-back", rs)
	kase := steptest.Case{Before: func(s *conntest.Sim) {
		s.AddFile("/var/lib/chrony/keys", "old", 0o600)
		s.AddFile("/etc/chrony/chrony.conf", "old", 0o644)
	}}
	steptest.Ensure(t, kase, install, remove)

	s := kase.Sim(t)
	first := s.Snapshot()
	if err := install.Run(t.Context(), kase.NewHost(t, s, install)); err != nil {
		t.Fatal(err)
	}
	s.AddFile("/var/lib/chrony/drift", "1.2", 0o644)
	s.AddFile("/run/chrony/chronyd.pid", "712", 0o644)
	if err := remove.Run(t.Context(), kase.NewHost(t, s, remove)); err != nil {
		t.Fatal(err)
	}
	if d := conntest.Diff(first, s.Snapshot()); d != "" {
		t.Errorf("not what it was:\n%s", d)
	}
}

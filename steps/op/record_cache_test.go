package op_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// installed is a host with ten files of kubexm's, and the step that removes them.
func installed(t *testing.T) (s *conntest.Sim, kase steptest.Case, remove steps.Step) {
	t.Helper()
	var rs []op.Resource
	for i := range 10 {
		rs = append(rs, op.Text(fmt.Sprintf("/etc/x%d", i), func(context.Context, *steps.Host) ([]byte, error) { return []byte("x\n"), nil }))
	}
	s = kase.Sim(t)
	install := op.Ensure("x.install", rs)
	if err := install.Run(t.Context(), kase.NewHost(t, s, install)); err != nil {
		t.Fatal(err)
	}
	folders := 0
	for _, c := range s.Calls() {
		if c.Verb == connector.VerbMkdir {
			folders++
		}
	}
	if folders != 1 {
		t.Errorf("the folder of the records was made %d times", folders)
	}
	s.ForgetCalls()
	return s, kase, op.Remove("x.uninstall", rs)
}

// TestRecordsAreReadTogether: a removal reads its records with one command, and removes
// each file and its record with two.
func TestRecordsAreReadTogether(t *testing.T) {
	s, kase, remove := installed(t)
	if err := remove.Run(t.Context(), kase.NewHost(t, s, remove)); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range s.Calls() {
		count[c.Verb]++
	}
	if count[connector.VerbLines] != 1 || count[connector.VerbRead] != 0 || count[connector.VerbRemove] != 20 {
		t.Errorf("commands: %v", count)
	}
	if left := s.Below("/var/lib/kubexm"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestARecordThatIsEmpty keeps nobody from the other records, and is no missing one.
func TestARecordThatIsEmpty(t *testing.T) {
	s, kase, remove := installed(t)
	all := s.Below("/var/lib/kubexm")
	i := slices.IndexFunc(all, func(p string) bool { return len(s.Read(p)) > 0 })
	text := s.Read(all[i])
	s.AddFile(all[i], "", 0o600)
	if err := remove.Run(t.Context(), kase.NewHost(t, s, remove)); err == nil {
		t.Error("an empty record was taken for none")
	}
	s.AddFile(all[i], text, 0o600)
	if err := remove.Run(t.Context(), kase.NewHost(t, s, remove)); err != nil {
		t.Fatal(err)
	}
	if left := s.Below("/var/lib/kubexm"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

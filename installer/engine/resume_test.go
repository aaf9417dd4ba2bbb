package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
)

// chain is a graph of steps with outputs: token is read by join, note by nobody.
func chain(t *testing.T) *plan.Graph {
	seed, token, note := steps.NewKey[int]("seed"), steps.NewKey[int]("token"), steps.NewKey[int]("note")
	with := func(name string, change func(*steps.Meta)) *step {
		x := s(name)
		change(&x.m)
		return x
	}
	return graph(t, func() plan.Fragment {
		return plan.Seq(
			plan.On(hosts("m"), with("check", func(m *steps.Meta) { m.ReadOnly, m.Always = true, true })),
			plan.On(hosts("m"), with("plant", func(m *steps.Meta) { m.Writes = []steps.AnyKey{seed} })),
			plan.On(hosts("m"), with("mint", func(m *steps.Meta) { m.Reads, m.Writes = []steps.AnyKey{seed}, []steps.AnyKey{token} })),
			plan.On(hosts("m"), with("write", func(m *steps.Meta) { m.Writes = []steps.AnyKey{note} })),
			plan.On(hosts("a", "b"), with("join", func(m *steps.Meta) { m.Reads = []steps.AnyKey{token} })),
			plan.On(hosts("a"), with("restart", func(m *steps.Meta) { m.Always = true })),
		)
	})
}

// TestResumableKeepsWhatIsRead: a step is never passed over whose output one reads
// that is carried out, nor what that one reads; and never what only looks, or has
// nothing to look at.
func TestResumableKeepsWhatIsRead(t *testing.T) {
	for _, c := range []struct {
		name   string
		unseen []string
		want   string
	}{
		{"all was seen", nil, "join@a join@b mint@m plant@m write@m"},
		{"one host has not joined", []string{"join@b"}, "join@a write@m"},
		{"the token was not minted", []string{"mint@m"}, "join@a join@b write@m"},
		{"what nobody reads was not written", []string{"write@m"}, "join@a join@b mint@m plant@m"},
		{"nothing was seen", []string{"plant@m", "mint@m", "write@m", "join@a", "join@b"}, ""},
	} {
		g := chain(t)
		passed := Resumable(g, func(node, host string) bool {
			return !slices.Contains(c.unseen, strings.TrimPrefix(node, "m/t/")+"@"+host)
		})
		got := strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(passed)), " "), "m/t/", "")
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPassedIsNotLookedAt: neither looked at nor run, and what comes after goes on.
func TestPassedIsNotLookedAt(t *testing.T) {
	a, b := s("a"), s("b")
	a.precheck = func(context.Context, *steps.Host) (steps.Verdict, error) {
		t.Error("it was looked at")
		return steps.Done, nil
	}
	e, r := engine(t)
	e.Passed = map[string]bool{Key("m/t/a", "x"): true}
	if err := e.Run(t.Context(), graph(t, func() plan.Fragment { return plan.On(hosts("x"), a, b) })); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a@x resumed", "b@x ran"}; !slices.Equal(r.events, want) {
		t.Errorf("%q", r.events)
	}
}

package steptest

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// drift tests Drift after an installation: nothing differs except units that a later step
// starts, the removal of any new file is detected, and Drift changes nothing. It ignores
// kubexm's records, and the links of enabled units that do not run yet.
func (c Case) drift(t *testing.T, install steps.Step) {
	t.Helper()
	d, ok := install.(steps.Drifter)
	if !ok {
		t.Skip("the step does not implement Drifter")
	}
	s := c.Sim(t)
	first := s.Snapshot()
	must(t, install.Run(t.Context(), c.On(t, s, install)))
	end := s.Snapshot()
	differs := slices.DeleteFunc(c.differing(t, d, s, install), func(name string) bool { return strings.HasPrefix(name, "unit ") })
	if len(differs) > 0 {
		t.Errorf("these differ right after the run: %q", differs)
	}
	same(t, "Drift changes nothing", end, s.Snapshot())
	before := c.differing(t, d, s, install)
	for _, file := range written(first, end) {
		if slices.ContainsFunc(append([]string{"/kubexm-objects.", ".wants/"}, c.Unseen...), func(of string) bool { return strings.Contains(file, of) }) {
			continue
		}
		s := c.Sim(t)
		must(t, install.Run(t.Context(), c.On(t, s, install)))
		s.RemoveAll(file)
		changed := s.Snapshot()
		if slices.Equal(c.differing(t, d, s, install), before) {
			t.Errorf("%s was removed, and Drift does not report it", file)
		}
		same(t, "Drift repairs nothing", changed, s.Snapshot())
	}
}

// differing returns the names of the resources that differ or cannot be inspected.
func (c Case) differing(t *testing.T, d steps.Drifter, s *conntest.Sim, step steps.Step) []string {
	t.Helper()
	var out []string
	for _, p := range d.Drift(t.Context(), c.On(t, s, step)) {
		if p.What != "" || p.Err != nil {
			out = append(out, p.Name)
		}
	}
	return out
}

// written returns the new files, without kubexm's records.
func written(first, end conntest.Snapshot) []string {
	var out []string
	for _, l := range end {
		words := strings.Fields(l)
		if words[0] == "file" && strings.HasPrefix(words[2], "-") && !strings.HasPrefix(words[1], "/var/lib/kubexm/") &&
			!slices.ContainsFunc(first, func(was string) bool { return strings.HasPrefix(was, "file "+words[1]+" ") }) {
			out = append(out, words[1])
		}
	}
	return out
}

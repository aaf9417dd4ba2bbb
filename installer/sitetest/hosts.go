package sitetest

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Hosts connects to every host of the config and reads its facts, as a run does, and returns
// the facades: nil for the hosts in silent.
func (s *Site) Hosts(silent ...string) func(manifest.Host) *steps.Host {
	s.T.Helper()
	all, err := s.reach(s.Cluster.Without(silent))
	if err != nil {
		s.T.Fatal(err)
	}
	return func(h manifest.Host) *steps.Host {
		if slices.Contains(silent, h.Name) {
			return nil
		}
		return all.of(h)
	}
}

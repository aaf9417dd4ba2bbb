package sitetest

import (
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// Hosts asks every host of the config what it is, as a run does, and gives their
// facades: nil for those that are called silent here.
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

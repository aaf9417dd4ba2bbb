package main

import (
	"errors"

	"github.com/mensylisir/kubexm/installer/plan"
)

// asked tells what a person has to confirm.
func (s *site) asked() error {
	what := s.pipeline.Question(s.cluster, s.graph)
	if what == "" {
		return nil
	}
	return &coded{error: errors.New(s.pipeline.Name + " of cluster " + s.cluster.Metadata.Name + " " + what), code: exitUsage, advice: "--yes does it; --dry-run says what it would do"}
}

// bundled tells whether a bundle is missing that hosts are to get packages from.
func (s *site) bundled() error {
	if s.bundle != nil || s.pipeline.Bundle != plan.BundleNeeded || len(s.cluster.Spec.Bundle.OperatingSystems) == 0 {
		return nil
	}
	return &coded{error: errors.New("the config names operating systems whose packages the hosts get, and --bundle is not given"), code: exitUsage, advice: "name the bundle"}
}

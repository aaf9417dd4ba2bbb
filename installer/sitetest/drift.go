package sitetest

import (
	"errors"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/steps"
)

// Drift compares the hosts with the cluster record, as `kubexm diff` does. has are the
// available artifacts, nil for the complete bundle. Hosts in lost do not answer.
func (s *Site) Drift(has steps.Artifacts, lost ...string) ([]installer.Drift, error) {
	s.T.Helper()
	all, err := s.reach(s.Cluster, lost...)
	if err != nil {
		return nil, err
	}
	e, applied, err := state.Recorded(s.T.Context(), s.Cluster, s.Workdir, all.of)
	if err != nil || e == nil {
		return nil, errors.Join(err, errors.New("no record"))
	}
	c, err := installer.AsRecorded(s.Cluster, e)
	if err != nil {
		return nil, err
	}
	if all, err = s.reach(c, lost...); err != nil {
		return nil, err
	}
	g, err := plan.Build(pipeline.Create(), plan.Scope{Want: c, Set: c.Spec.Kubernetes.Version})
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		h.Applied = func() steps.Applied { return applied }
		if has != nil {
			h.Artifacts = has
		}
	}
	if len(lost) == 0 {
		if err := installer.Recall(s.T.Context(), c, all.of); err != nil {
			return nil, err
		}
	}
	return installer.Drifts(s.T.Context(), g, all.of, installer.DriftOptions{Parallel: 8})
}

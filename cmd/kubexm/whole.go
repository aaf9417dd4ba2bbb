package main

import (
	"context"
	"runtime"

	"github.com/mensylisir/kubexm/installer/plan"
)

// wholeBundle reads every byte of the bundle of a run that is to send it to hosts:
// what is damaged is found here, and no host is called for it.
func (a *app) wholeBundle(ctx context.Context, s *site) error {
	if s.bundle == nil || s.pipeline.Bundle != plan.BundleNeeded {
		return nil
	}
	p := a.progress(a.structured())
	p.phase("verify")
	p.expect(s.bundle.DataBytes())
	err := s.bundle.Verify(ctx, runtime.GOMAXPROCS(0), p.add)
	p.stop()
	if err != nil {
		return refused(err)
	}
	return nil
}

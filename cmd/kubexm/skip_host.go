package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/steps"
)

// addSkipHost adds --skip-host, for commands that take a cluster away.
func (f *siteFlags) addSkipHost(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.skipHosts, "skip-host", nil, "go on without this host, and remember that it is to be cleaned (repeatable)")
}

// reach opens the session of a command. Of one that takes a cluster away the cluster is
// from then on what was applied, without the hosts that are passed over.
func (a *app) reach(ctx context.Context, f *siteFlags, s *site) (*installer.Session, installer.HostErrors, error) {
	o := a.options(f, s)
	o.Alone = !f.dryRun
	if !s.pipeline.Away {
		return installer.Reach(ctx, o)
	}
	session, d, unreached, err := installer.ReachDeletion(ctx, o, f.skipHosts)
	var unknown *state.UnknownHostError
	var needed *state.SkipError
	var other *state.OtherClusterError
	switch {
	case errors.As(err, &unknown):
		return nil, nil, &coded{error: fmt.Errorf("--skip-host %s: %w%s", unknown.Name, err, didYouMean(unknown.Name, unknown.Known)), code: exitUsage, advice: "name a host as spec.hosts does"}
	case errors.As(err, &needed):
		return nil, nil, &coded{error: fmt.Errorf("--skip-host: %w", err), code: exitUsage, advice: needed.Advice()}
	case errors.As(err, &other):
		return nil, nil, &coded{error: err, code: exitPreflight, advice: other.Advice()}
	case err != nil:
		return nil, nil, err
	}
	s.deletion, s.cluster = d, session.Cluster
	s.graph, err = plan.Build(s.pipeline, s.scope())
	if err != nil {
		return nil, nil, errors.Join(err, session.Close())
	}
	return session, unreached, nil
}

// remove carries out the plan of s, which takes a cluster away, and says what stays on
// hosts that it passes over.
func (a *app) remove(ctx context.Context, f *siteFlags, s *site, session *installer.Session) error {
	if !f.dryRun {
		if err := s.deletion.Begin(); err != nil {
			return err
		}
	}
	if err := a.carryOut(ctx, f, s, session.Run); err != nil {
		return err
	}
	if !f.dryRun {
		if err := s.deletion.End(); err != nil {
			return err
		}
	}
	a.tellLeft(s, session)
	return nil
}

// tellLeft says what stays on the hosts that were passed over.
func (a *app) tellLeft(s *site, session *installer.Session) {
	for _, name := range s.deletion.Skip {
		h, _ := s.deletion.Whole.Host(name)
		x := steps.Finding{Host: name, Check: "passed-over", Warning: true,
			What:   "was passed over, and keeps " + strings.Join(state.Stays(s.deletion.Whole, name), "; "),
			Advice: "once it answers: run this command again without --skip-host; install cleans it first, too. Until then keep it off the network, or destroy its disk"}
		if a.lines != nil {
			a.lines.finding(x)
			continue
		}
		fmt.Fprintf(a.out, "  left  %s (%s) %s\n        remembered in %s\n  next  %s\n", name, h.Address, x.What, filepath.Join(session.Workdir.Dir, "left.json"), x.Advice)
	}
}

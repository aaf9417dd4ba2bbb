package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// addSkipHost adds --skip-host, for commands that can go on without a host.
func (f *siteFlags) addSkipHost(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.skipHosts, "skip-host", nil, "go on without this host, and remember what is not done there (repeatable)")
}

// reach opens the session of a command. Of one that takes a cluster away the cluster is
// from then on what was applied, without the hosts that are passed over.
func (a *app) reach(ctx context.Context, f *siteFlags, s *site) (*installer.Session, installer.HostErrors, error) {
	o := a.options(f, s)
	o.Alone = !f.dryRun
	if !s.pipeline.Away {
		o.Away = s.away
		return installer.Reach(ctx, o)
	}
	session, d, unreached, err := installer.ReachDeletion(ctx, o, f.skipHosts)
	var other *state.OtherClusterError
	switch {
	case notSkipped(err, exitUsage) != nil:
		return nil, nil, notSkipped(err, exitUsage)
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

// notSkipped tells that a host cannot be passed over; nil for an error that says
// something else. needed is the exit code where the host is needed.
func notSkipped(err error, needed int) error {
	var unknown *state.UnknownHostError
	var skip *state.SkipError
	switch {
	case errors.As(err, &unknown):
		return &coded{error: fmt.Errorf("--skip-host %s: %w%s", unknown.Name, err, didYouMean(unknown.Name, unknown.Known)), code: exitUsage, advice: "name a host as spec.hosts does"}
	case errors.As(err, &skip):
		return &coded{error: fmt.Errorf("--skip-host: %w", err), code: needed, advice: skip.Advice()}
	}
	return nil
}

// takeAway takes the hosts that a person names for a pipeline that keeps a cluster. All
// of them are hosts of the config.
func (f *siteFlags) takeAway(s *site) error {
	if len(f.skipHosts) == 0 || !s.pipeline.Keeps {
		return nil
	}
	var known []string
	for _, h := range s.cluster.Spec.Hosts {
		known = append(known, h.Name)
	}
	for _, name := range f.skipHosts {
		if !slices.Contains(known, name) {
			return notSkipped(&state.UnknownHostError{Name: name, Known: known}, exitUsage)
		}
	}
	s.away = slices.Compact(slices.Sorted(slices.Values(f.skipHosts)))
	return nil
}

// passOver holds the hosts that are away against the record of the cluster, and keeps
// what was applied to it.
func (s *site) passOver(ctx context.Context, session *installer.Session) error {
	if len(s.away) == 0 {
		return nil
	}
	var err error
	s.exists, err = session.GoesWithout(ctx, s.away)
	if no := notSkipped(err, exitPreflight); no != nil {
		return no
	}
	return err
}

// tellUndone says what an installation left undone on the hosts that it went without.
func (a *app) tellUndone(s *site) {
	for _, name := range s.away {
		h, _ := s.cluster.Host(name)
		x := steps.Finding{Host: name, Check: "passed-over", Warning: true,
			What:   "was passed over: " + strings.Join(state.Undone(s.cluster, s.exists, name), "; "),
			Advice: "once it answers: run this command again without --skip-host"}
		if cp := s.cluster.Spec.ControlPlaneEndpoint; s.cluster.Spec.RoleGroups.Names(manifest.RoleMaster)[0] == name && cp.Address == "" && !cp.ExternalDNS {
			x.Advice += ". Until then kube-proxy of workers looks for " + name + ": kubectl -n kube-system delete pod -l k8s-app=kube-proxy"
		}
		if a.lines != nil {
			a.lines.finding(x)
			continue
		}
		fmt.Fprintf(a.out, "  left  %s (%s) %s\n  next  %s\n", name, h.Address, x.What, x.Advice)
	}
}

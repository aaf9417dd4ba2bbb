package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// protectExisting refuses an installation that would damage an existing cluster, or
// whose config differs from it. Otherwise it cleans the hosts that an earlier deletion
// skipped. A dry run only reports.
func (a *app) protectExisting(ctx context.Context, s *siteRun) error {
	found, err := s.Existing(ctx)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		a.writeFindings(report.SortedFindings(found, s.Cluster))
		console.PrintFindings(a.screen, found, s.Cluster, a.tableWidth(a.err))
		fmt.Fprintf(a.screen, "%s is refused: the cluster exists and stays as it is; nothing was changed on any host\n", strings.Join(s.Pipeline.Command, " "))
		return &refusal.Error{Kind: refusal.Hosts, Err: errReported}
	}
	if s.DryRun {
		return nil
	}
	if err := a.adopt(ctx, s.Session); err != nil {
		return err
	}
	cleaned, err := s.Clean(ctx, func(e engine.Event) {
		if a.lines != nil && e.Finding != nil {
			a.lines.Finding(*e.Finding)
		}
	})
	if len(cleaned) > 0 {
		fmt.Fprintf(a.screen, "cleaned: %s, skipped by an earlier deletion\n", strings.Join(cleaned, ", "))
	}
	return err
}

// adopt copies the cluster record into the workdir if the cluster's is newer, and
// reports that.
func (a *app) adopt(ctx context.Context, session *installer.Session) error {
	from, replaced, err := session.Adopt(ctx)
	switch {
	case err != nil || from == "":
		return err
	case replaced:
		fmt.Fprintf(a.screen, "record: the cluster record in %s was outdated, and was replaced by the one of %s\n", session.Workdir.Dir, from)
	default:
		fmt.Fprintf(a.screen, "record: %s had no cluster record; it was copied from %s\n", session.Workdir.Dir, from)
	}
	return nil
}

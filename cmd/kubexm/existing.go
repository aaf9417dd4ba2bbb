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

// keepExisting refuses an installation that would harm a cluster that exists, or would
// say of it what it does not do. Then it cleans the hosts that a deletion has left: what
// comes next meets them as they were before. A dry run says so only.
func (a *app) keepExisting(ctx context.Context, s *siteRun) error {
	found, err := s.Existing(ctx)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		a.sayFindings(report.SortedFindings(found, s.Cluster))
		console.PrintFindings(a.screen, found, s.Cluster, a.tableWidth(a.err))
		fmt.Fprintln(a.screen, "install ends here: the cluster exists and stays as it is; nothing was changed on any host")
		return &refusal.Error{Kind: refusal.Hosts, Err: errSaid}
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
		fmt.Fprintf(a.screen, "cleaned: %s, which an earlier deletion passed over\n", strings.Join(cleaned, ", "))
	}
	return err
}

// adopt takes the cluster's record to this machine where that is newer, and says so.
func (a *app) adopt(ctx context.Context, session *installer.Session) error {
	from, replaced, err := session.Adopt(ctx)
	switch {
	case err != nil || from == "":
		return err
	case replaced:
		fmt.Fprintf(a.screen, "record: the one in %s was older than the cluster's, and was replaced by that of %s\n", session.Workdir.Dir, from)
	default:
		fmt.Fprintf(a.screen, "record: %s had none of this cluster, and has that of %s now\n", session.Workdir.Dir, from)
	}
	return nil
}

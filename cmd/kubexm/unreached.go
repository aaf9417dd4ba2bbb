package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
)

// unreached reports hosts that cannot be reached. Before an installation the other hosts
// are checked anyway, so that all findings are in one report.
func (a *app) unreached(ctx context.Context, s *siteRun, hosts installer.HostErrors) error {
	const next = "next: nothing was changed on any host; fix this, then run the same command again"
	if s.Pipeline.WritesRecord {
		checks := &siteRun{Site: s.ChecksRequest()}
		found, err := a.runChecks(ctx, checks, hosts)
		if err != nil {
			return err
		}
		s.journal, s.tally = checks.journal, checks.tally
		a.writeFindings(found)
		console.PrintFindings(a.screen, found, s.Cluster, a.tableWidth(a.err))
		printUnreached(a.screen, s.Pipeline, s.Cluster, hosts)
		fmt.Fprintln(a.screen, next)
		if _, err := s.Session.MayContinueWithout(ctx, append(slices.Clone(s.Away), hosts.Names()...)); err == nil {
			fmt.Fprintf(a.screen, "      or continue without: %s\n", skipping(slices.Concat(s.Away, hosts.Names())))
		}
		return &refusal.Error{Kind: refusal.Hosts, Err: errReported}
	}
	fs := report.Failures(hosts, s.Graph, s.Cluster)
	if a.lines != nil {
		for _, f := range fs {
			a.lines.Failure(f)
		}
	}
	for _, f := range report.Grouped(fs, s.Cluster) {
		console.PrintFailure(a.screen, f, s.Cluster)
	}
	fmt.Fprintln(a.screen, next)
	if names := s.Unanswering(hosts); len(names) > 0 {
		fmt.Fprintf(a.screen, "      or, if %s will never answer again, add --dead\n", strings.Join(names, ", "))
	}
	if s.Deletion != nil {
		if skip, err := s.Deletion.Skipping(hosts.Names()); err == nil {
			fmt.Fprintf(a.screen, "      or continue without: %s\n", skipping(skip))
		}
	}
	return &refusal.Error{Kind: refusal.Hosts, Err: errReported}
}

// writeFindings writes findings as JSON lines, if the command writes those.
func (a *app) writeFindings(found []steps.Finding) {
	if a.lines == nil {
		return
	}
	for _, x := range found {
		a.lines.Finding(x)
	}
}

// printUnreached reports that a command ends because hosts cannot be reached, and
// which of them cannot be skipped.
func printUnreached(w io.Writer, p plan.Pipeline, c *manifest.Cluster, hosts installer.HostErrors) {
	var members []string
	for _, name := range hosts.Names() {
		roles := c.RolesOf(name)
		if slices.Contains(roles, manifest.RoleMaster) || slices.Contains(roles, manifest.RoleEtcd) {
			members = append(members, name)
		}
	}
	fmt.Fprintf(w, "%s is refused: it needs every host of the config, and cannot reach %s\n", strings.Join(p.Command, " "), report.HostList(c, hosts.Names()))
	if len(members) > 0 {
		fmt.Fprintf(w, "of the control plane: %s; a cluster is changed only if all its masters and etcd members are reached\n", strings.Join(members, ", "))
	}
}

// skipping returns the flags that skip hosts.
func skipping(hosts []string) string {
	return "--skip-host " + strings.Join(hosts, " --skip-host ")
}

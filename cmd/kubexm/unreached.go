package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
)

// unreached tells why hosts cannot be reached. Before a cluster is made the others
// are looked at all the same, so that a person mends all of them at once.
func (a *app) unreached(ctx context.Context, s *siteRun, hosts installer.HostErrors) error {
	const next = "next: nothing was changed on any host; mend this, then run the same command again"
	if s.Pipeline.Keeps {
		look := &siteRun{Site: s.Looking()}
		found, err := a.look(ctx, look, hosts)
		if err != nil {
			return err
		}
		s.journal, s.tally = look.journal, look.tally
		a.sayFindings(found)
		console.PrintFindings(a.screen, found, s.Cluster, a.tableWidth(a.err))
		tellUnreached(a.screen, s.Cluster, hosts)
		fmt.Fprintln(a.screen, next)
		if _, err := s.Session.GoesWithout(ctx, append(slices.Clone(s.Away), hosts.Names()...)); err == nil {
			fmt.Fprintf(a.screen, "      or go on without: %s\n", skipping(s.Away, hosts.Names()))
		}
		return &refusal.Error{Kind: refusal.Hosts, Err: errSaid}
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
	if s.Pipeline.Away {
		fmt.Fprintf(a.screen, "      or go on without: %s\n", skipping(nil, hosts.Names()))
	}
	return &refusal.Error{Kind: refusal.Hosts, Err: errSaid}
}

// sayFindings writes findings as lines, where the command has such.
func (a *app) sayFindings(found []steps.Finding) {
	if a.lines == nil {
		return
	}
	for _, x := range found {
		a.lines.Finding(x)
	}
}

// tellUnreached says that an installation ends because hosts cannot be reached, and of
// which it never goes on without.
func tellUnreached(w io.Writer, c *manifest.Cluster, hosts installer.HostErrors) {
	var members []string
	for _, name := range hosts.Names() {
		roles := c.RolesOf(name)
		if slices.Contains(roles, manifest.RoleMaster) || slices.Contains(roles, manifest.RoleEtcd) {
			members = append(members, name)
		}
	}
	fmt.Fprintf(w, "install ends here: it cannot reach %s, and needs every host of the config\n", report.HostList(c, hosts.Names()))
	if len(members) > 0 {
		fmt.Fprintf(w, "of the control plane: %s; without its members nothing is changed in a cluster\n", strings.Join(members, ", "))
	}
}

// skipping are the flags that go on without hosts, with those that are given already.
func skipping(away, more []string) string {
	return "--skip-host " + strings.Join(slices.Concat(away, more), " --skip-host ")
}

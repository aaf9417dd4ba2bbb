package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest"
)

// unreached tells why hosts cannot be reached. Before a cluster is made the others
// are looked at all the same, so that a person mends all of them at once.
func (a *app) unreached(ctx context.Context, f *siteFlags, s *site, session *installer.Session, hosts installer.HostErrors) error {
	const next = "next: nothing was changed on any host; mend this, then run the same command again"
	if s.pipeline.Keeps {
		look := &site{pipeline: pipeline.Preflight(), cluster: s.cluster, bundle: s.bundle, skip: s.skip, skipped: s.skipped}
		found, err := a.look(ctx, f, look, session, hosts)
		if err != nil {
			return err
		}
		s.journal, s.tally = look.journal, look.tally
		if a.lines != nil {
			for _, x := range found {
				a.lines.finding(x)
			}
		}
		printFindings(a.screen, found, s.cluster, a.tableWidth(a.err))
		tellUnreached(a.screen, s.cluster, hosts)
		fmt.Fprintln(a.screen, next)
		if _, err := session.GoesWithout(ctx, append(slices.Clone(s.away), hosts.Names()...)); err == nil {
			fmt.Fprintf(a.screen, "      or go on without: %s\n", skipping(s.away, hosts.Names()))
		}
		return &coded{code: exitPreflight, error: errSaid}
	}
	fs := failures(hosts, s.graph, s.cluster)
	if a.lines != nil {
		for _, f := range fs {
			a.lines.failure(f)
		}
	}
	for _, f := range grouped(fs, s.cluster) {
		f.writeTo(a.screen, s.cluster)
	}
	fmt.Fprintln(a.screen, next)
	if s.pipeline.Away {
		fmt.Fprintf(a.screen, "      or go on without: %s\n", skipping(nil, hosts.Names()))
	}
	return &coded{code: exitPreflight, error: errSaid}
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
	fmt.Fprintf(w, "install ends here: it cannot reach %s, and needs every host of the config\n", hostList(c, hosts.Names()))
	if len(members) > 0 {
		fmt.Fprintf(w, "of the control plane: %s; without its members nothing is changed in a cluster\n", strings.Join(members, ", "))
	}
}

// skipping are the flags that go on without hosts, with those that are given already.
func skipping(away, more []string) string {
	return "--skip-host " + strings.Join(slices.Concat(away, more), " --skip-host ")
}

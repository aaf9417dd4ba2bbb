package main

import (
	"context"
	"fmt"

	"github.com/mensylisir/kubexm/installer"
)

// unreached tells why hosts cannot be reached. Before a cluster is made the others
// are looked at all the same, so that a person mends all of them at once.
func (a *app) unreached(ctx context.Context, f *siteFlags, s *site, session *installer.Session, hosts installer.HostErrors) error {
	const next = "next: nothing was changed on any host; mend this, then run the same command again"
	if s.graph.Name == "create" {
		look := &site{cluster: s.cluster, bundle: s.bundle, context: s.context, skipped: s.skipped}
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
		fmt.Fprintln(a.screen, next)
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
	return &coded{code: exitPreflight, error: errSaid}
}

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// mostConsent limits the steps that are named for one host, and mostConsentHosts the hosts.
const (
	mostConsent      = 4
	mostConsentHosts = 20
)

// terminal returns the terminal that kubexm can ask on; nil if there is none.
func (a *app) terminal() *os.File {
	in, ok := a.in.(*os.File)
	if !ok || a.structured() || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	return in
}

// consented returns the error of a run that has to be confirmed, and cannot be.
func (a *app) consented(f *siteFlags, s *siteRun) error {
	if f.yes || f.dryRun || a.terminal() != nil {
		return nil
	}
	return s.Confirm()
}

// consent describes a run that has to be confirmed, once its plan is known, and asks. It changes nothing.
func (a *app) consent(ctx context.Context, f *siteFlags, s *siteRun) error {
	refused := s.Confirm()
	in := a.terminal()
	if refused == nil || f.yes || f.dryRun || in == nil {
		return nil
	}
	var screen strings.Builder
	fmt.Fprintln(&screen, refused)
	printConsent(&screen, s.Graph)
	if last := lastTook(s); last != "" {
		fmt.Fprintf(&screen, "the last %s %s\n", s.Pipeline.Name, last)
	}
	yes, err := a.confirm(ctx, in, screen.String()+"Continue? [y/N] ")
	if err != nil || yes {
		return err
	}
	return refused
}

// printConsent lists the hosts that a plan disturbs or deletes data on, in the order in which it comes to
// them.
func printConsent(to io.Writer, g *plan.Graph) {
	type row struct {
		host                string
		disturbed, destroys []string
	}
	var rows []*row
	for _, n := range g.Nodes {
		m := n.Step.Meta()
		if m.Risk == steps.Safe {
			continue
		}
		for _, h := range n.Hosts {
			name := h.Name
			if plan.IsLead(h) {
				name = "one master"
			}
			i := slices.IndexFunc(rows, func(r *row) bool { return r.host == name })
			if i < 0 {
				i, rows = len(rows), append(rows, &row{host: name})
			}
			list := &rows[i].disturbed
			if m.Risk == steps.Destroys {
				list = &rows[i].destroys
			}
			if !slices.Contains(*list, m.Name) {
				*list = append(*list, m.Name)
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  HOST\tDISTURBED BY\tDATA DELETED BY")
	for i, r := range rows {
		if i == mostConsentHosts {
			fmt.Fprintf(w, "  and %d more\t\t\n", len(rows)-i)
			break
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", r.host, atMost(r.disturbed), atMost(r.destroys))
	}
	_ = w.Flush() // it writes to memory
	fmt.Fprintln(to, "in this order; --dry-run shows every step")
}

func atMost(names []string) string {
	if n := len(names); n > mostConsent {
		names = append(names[:mostConsent:mostConsent], fmt.Sprintf("and %d more", n-mostConsent))
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ", ")
}

// lastTook says how long the last run of the same kind took, as far as this workdir knows; "" if it
// does not.
func lastTook(s *siteRun) string {
	all, err := cluster.ReadWorkdirHistory(s.Session.Workdir.Dir)
	if err != nil {
		return ""
	}
	for _, e := range slices.Backward(all) {
		if e.Kind == s.Pipeline.Name && e.Outcome == cluster.OutcomeDone {
			return fmt.Sprintf("took %s, on %s", e.Took, e.End.Format("2006-01-02"))
		}
	}
	return ""
}

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/preflight"
)

// preflightCommand returns the command of the pipeline that only checks hosts.
func (a *app) preflightCommand(p plan.Pipeline) *cobra.Command {
	f := &siteFlags{dryRun: true}
	cmd := &cobra.Command{
		Use: p.Command[len(p.Command)-1] + " -f CONFIG", Args: cobra.NoArgs, Short: p.Short, Long: p.Long + "\n\n" + checkList(), Example: p.Example,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runPreflight(cmd.Context(), f, p) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "default the bundle's own"))
	fs.StringVarP(&f.bundle, "bundle", "b", "", useBundle)
	fs.StringVar(&f.workdir, "workdir", ".", useWorkdir)
	fs.IntVarP(&f.parallel, "parallel", "p", 32, useParallel+"hosts")
	f.addSkip(cmd, "skip")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagFilename("bundle", "tar.zst", "001")
	f.policyFlags.add(cmd)
	f.baseFlags.add(cmd)
	f.addDial(cmd)
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// checkList lists the checks with their descriptions, for the help.
func checkList() string {
	var b strings.Builder
	for _, c := range preflight.Checks() {
		fmt.Fprintf(&b, "  %-22s  %s\n", preflight.ShortName(c.Name), c.Question)
	}
	return strings.TrimRight(b.String(), "\n")
}

// addSkip adds the flag that skips checks, and its old name.
func (f *siteFlags) addSkip(cmd *cobra.Command, old string) {
	const name = "skip-checks"
	cmd.Flags().StringSliceVar(&f.skip, name, nil, "checks to skip; kubexm preflight --help lists their names")
	renamed(cmd, old, name)
	var short []string
	for _, n := range preflight.Names() {
		short = append(short, preflight.ShortName(n))
	}
	_ = cmd.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		before, _ := "", word
		if i := strings.LastIndexByte(word, ','); i >= 0 {
			before = word[:i+1]
		}
		var out []string
		for _, n := range short {
			if !slices.Contains(strings.Split(before, ","), n) {
				out = append(out, before+n)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// runPreflight checks all hosts, and prints the findings on standard output.
func (a *app) runPreflight(ctx context.Context, f *siteFlags, p plan.Pipeline) error {
	s := newSiteRun(p, true)
	if a.structured() {
		a.lines = console.NewLines(a.out, a.output)
	}
	return a.endLines(ctx, s, a.checkHosts(ctx, f, s))
}

func (a *app) checkHosts(ctx context.Context, f *siteFlags, s *siteRun) error {
	if err := a.openSite(ctx, f, s); err != nil {
		return err
	}
	defer s.Close()
	if err := a.confirmHosts(ctx, f, s); err != nil {
		return err
	}
	begin := time.Now()
	unreached, err := s.Reach(ctx)
	if err != nil {
		return err
	}
	found, err := a.runChecks(ctx, s, unreached)
	s.took = time.Since(begin)
	if err != nil {
		return err
	}
	return a.reportFindings(s, found)
}

// runChecks runs the checks on the hosts that were reached. It returns all findings,
// sorted, including unreachable hosts and skipped checks. It returns an error if the
// checks themselves failed.
func (a *app) runChecks(ctx context.Context, s *siteRun, unreached installer.HostErrors) ([]steps.Finding, error) {
	found, journal, failed, err := s.RunChecks(ctx, unreached, func(g *plan.Graph) {
		for _, n := range g.Nodes {
			s.tally.Total += len(n.Hosts)
		}
		a.orderly.Store(true)
	}, func(e engine.Event) {
		s.tally.Add(e.Outcome)
		if a.lines != nil {
			a.lines.Event(e)
		}
	})
	a.orderly.Store(false)
	s.journal = journal
	if errors.Is(err, site.ErrStopped) {
		return nil, &refusal.Error{Err: err, Kind: refusal.Interrupted}
	}
	if err != nil {
		return nil, err
	}
	found = report.SortedFindings(found, s.Cluster)
	if len(failed) > 0 {
		a.printFound(s, found)
		return nil, errors.Join(failed...)
	}
	return found, nil
}

// printFound prints the findings, as a table or as lines of JSON.
func (a *app) printFound(s *siteRun, found []steps.Finding) {
	if a.lines != nil {
		a.writeFindings(found)
		return
	}
	console.PrintFindings(a.out, found, s.Cluster, a.tableWidth(a.out))
}

// reportFindings prints findings and a summary, and returns the error that sets the exit
// code.
func (a *app) reportFindings(s *siteRun, found []steps.Finding) error {
	a.printFound(s, found)
	bad := slices.ContainsFunc(found, func(x steps.Finding) bool { return x.Level() == steps.LevelError })
	if a.lines == nil {
		if len(s.Skipped) > 0 {
			fmt.Fprintf(a.out, "skipped: %s\n", shortNames(s.Skipped))
		}
		fmt.Fprintf(a.out, "%s in %s; nothing was changed\n", console.FormatCount(s.tally.Ended(), "check"), console.FormatDuration(s.took))
	}
	if bad {
		return &refusal.Error{Kind: refusal.Hosts, Err: errReported}
	}
	return nil
}

func shortNames(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, preflight.ShortName(n))
	}
	return strings.Join(out, ", ")
}

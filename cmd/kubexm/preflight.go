package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/preflight"
)

// preflightCommand is the command of a pipeline that only looks.
func (a *app) preflightCommand(p plan.Pipeline) *cobra.Command {
	f := &siteFlags{dryRun: true}
	cmd := &cobra.Command{
		Use: p.Command[len(p.Command)-1] + " -f CONFIG", Args: cobra.NoArgs, Short: p.Short, Long: p.Long + "\n\n" + checkList(), Example: p.Example,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runPreflight(cmd.Context(), f, p) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "without it the bundle's own"))
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

// checkList names the checks with what they ask, for the help.
func checkList() string {
	var b strings.Builder
	for _, c := range preflight.Checks() {
		fmt.Fprintf(&b, "  %-22s  %s\n", shortCheck(c.Name), c.Asks)
	}
	return strings.TrimRight(b.String(), "\n")
}

// addSkip adds the flag that leaves checks out.
func (f *siteFlags) addSkip(cmd *cobra.Command, old string) {
	const name = "skip-checks"
	cmd.Flags().StringSliceVar(&f.skip, name, nil, "checks to leave out, by the names that kubexm preflight --help lists")
	renamed(cmd, old, name)
	var short []string
	for _, n := range preflight.Names() {
		short = append(short, shortCheck(n))
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

// skipped gives the full names of the checks that a person left out, sorted.
func (f *siteFlags) skipped(known []string) ([]string, error) {
	var out []string
	for _, word := range f.skip {
		name := word
		if !slices.Contains(known, name) {
			name = "preflight." + word
		}
		if !slices.Contains(known, name) {
			var words []string
			for _, n := range known {
				words = append(words, shortCheck(n))
			}
			slices.Sort(words)
			switch shortCheck(word) {
			case shortCheck(preflight.Connectivity), shortCheck(preflight.Sudo):
				return nil, &coded{error: fmt.Errorf("check %s cannot be left out", word), code: exitUsage, advice: "without it nothing else can be looked at"}
			case shortCheck(state.Check):
				return nil, &coded{error: fmt.Errorf("check %s cannot be left out", word), code: exitUsage, advice: "it keeps a cluster that exists from harm; do what it says of each finding"}
			}
			return nil, &coded{error: fmt.Errorf("there is no check %s%s", word, didYouMean(shortCheck(word), words)), code: exitUsage, advice: "choose among " + strings.Join(words, ", ")}
		}
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// leaveOut has the plan of s leave out the checks that the flags name, and those
// that nothing is known for.
func (f *siteFlags) leaveOut(s *site) error {
	p := s.pipeline
	if len(f.skip) == 0 && (p.Bundle != plan.BundleOptional || s.bundle != nil) {
		return nil
	}
	known, err := installer.ChecksOf(p, s.cluster)
	if err != nil {
		return err
	}
	if s.skipped, err = f.skipped(known); err != nil {
		return err
	}
	s.skip = slices.Clone(s.skipped)
	if p.Bundle != plan.BundleOptional || s.bundle != nil {
		return nil
	}
	for _, name := range needBundle(s.cluster) {
		if slices.Contains(known, name) && !slices.Contains(s.skipped, name) {
			s.skip = append(s.skip, name)
			s.unchecked = append(s.unchecked, steps.Finding{Check: name, What: "not looked at without a bundle", Advice: "name it with --bundle", Note: true})
		}
	}
	return nil
}

// runPreflight looks at all hosts, and tells what it found on standard output.
func (a *app) runPreflight(ctx context.Context, f *siteFlags, p plan.Pipeline) error {
	s := &site{pipeline: p, dryRun: true}
	if a.structured() {
		a.lines = newRunLines(a.out, a.output)
	}
	err := a.lookAtHosts(ctx, f, s)
	if a.lines == nil {
		return err
	}
	return a.lines.end(ctx, s, err)
}

func (a *app) lookAtHosts(ctx context.Context, f *siteFlags, s *site) error {
	if err := a.openSite(ctx, f, s); err != nil {
		return err
	}
	if s.bundle != nil {
		defer s.bundle.Close()
	}
	if err := a.confirmHosts(ctx, f, s); err != nil {
		return err
	}
	begin := time.Now()
	session, unreached, err := installer.Reach(ctx, a.options(f, s))
	if err != nil {
		return err
	}
	defer session.Close()
	found, err := a.look(ctx, f, s, session, unreached)
	s.took = time.Since(begin)
	if err != nil {
		return err
	}
	return a.tellFindings(s, found)
}

// options are what a session of s is opened with.
func (a *app) options(f *siteFlags, s *site) installer.Options {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	return installer.Options{Cluster: s.cluster, Bundle: s.bundle, Base: f.workdir, Log: a.log, LookupEnv: a.env, Home: home, Parallel: f.parallel, Version: ownVersion()}
}

// look makes the checks on the hosts that were reached, and gives all findings,
// sorted: those that cannot be reached, and what was not looked at, among them.
// An error is that looking itself failed.
func (a *app) look(ctx context.Context, f *siteFlags, s *site, session *installer.Session, unreached installer.HostErrors) ([]steps.Finding, error) {
	found := slices.Concat(unreached.Findings(), s.unchecked)
	var failed []error
	existing, err := session.Existing(ctx)
	if err != nil {
		return nil, err
	}
	found = append(found, existing...)
	if reached := session.Reached(); len(reached) > 0 {
		scope := s.scope()
		scope.Targets = reached
		g, err := plan.Build(s.pipeline, scope)
		if err != nil {
			return nil, err
		}
		s.graph = g
		for _, n := range g.Nodes {
			s.tally.Total += len(n.Hosts)
		}
		a.orderly.Store(true)
		s.journal, err = session.Run(ctx, g, installer.RunOptions{DryRun: true, Parallel: f.parallel, Stop: a.stop, Version: ownVersion(), Skipped: s.skipped, Report: func(e engine.Event) {
			if e.Finding != nil {
				found = append(found, *e.Finding)
				return
			}
			s.tally.add(e.Outcome)
			if a.lines != nil {
				a.lines.event(e)
			}
		}})
		a.orderly.Store(false)
		if ctx.Err() != nil || errors.Is(err, engine.ErrStopped) {
			return nil, &coded{code: exitInterrupted, error: errors.New("stopped before all was looked at")}
		}
		for _, e := range flatten(err) {
			var fs steps.Findings
			switch {
			case errors.As(e, &fs):
				found = append(found, fs...)
			case e != nil:
				failed = append(failed, e)
			}
		}
	}
	found = sortedFindings(found, s.cluster)
	if len(failed) > 0 {
		a.printFound(s, found)
		return nil, errors.Join(failed...)
	}
	return found, nil
}

// printFound writes the findings, as a table or as lines of JSON.
func (a *app) printFound(s *site, found []steps.Finding) {
	if a.lines != nil {
		for _, x := range found {
			a.lines.finding(x)
		}
		return
	}
	printFindings(a.out, found, s.cluster, a.tableWidth(a.out))
}

// tellFindings ends a look.
func (a *app) tellFindings(s *site, found []steps.Finding) error {
	a.printFound(s, found)
	bad := slices.ContainsFunc(found, func(x steps.Finding) bool { return x.Level() == steps.LevelError })
	if a.lines == nil {
		if len(s.skipped) > 0 {
			fmt.Fprintf(a.out, "left out: %s\n", shortNames(s.skipped))
		}
		fmt.Fprintf(a.out, "%s in %s; nothing was changed\n", count(s.tally.ended(), "check"), brief(s.took))
	}
	if bad {
		return &coded{code: exitPreflight, error: errSaid}
	}
	return nil
}

func shortNames(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, shortCheck(n))
	}
	return strings.Join(out, ", ")
}

// needBundle are the checks that cannot be made without a bundle.
func needBundle(c *manifest.Cluster) []string {
	out := []string{"registryd.check-push"}
	for _, x := range preflight.Checks() {
		if x.Bundle && (!x.Packages || len(c.Spec.Bundle.OperatingSystems) > 0) {
			out = append(out, x.Name)
		}
	}
	slices.Sort(out)
	return out
}

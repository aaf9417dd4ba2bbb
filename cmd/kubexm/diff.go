package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

// diffCommand compares a cluster's hosts and objects with what was applied.
func (a *app) diffCommand() *cobra.Command {
	f := &siteFlags{}
	cmd := &cobra.Command{
		Use: "diff -f CONFIG", Args: cobra.NoArgs, Short: "Show drift: what differs on hosts from what was applied",
		Long: `Compare every host with what was last applied: files by digest, units, kernel settings, and the
cluster's objects. Differences are listed by host, with the change that would correct them. No host is
changed.

The desired state is the cluster record, read from the cluster or from the workdir. The config is only
used to reach the hosts; fields that were edited since the last operation are not drift.

Files from the bundle are compared with its lock file. Without --bundle, kubexm uses the applied
bundle if it is still on this machine. Otherwise it uses the copy of the lock file in the workdir. Resources that
need more than the lock file are listed as not checked.

Exit codes: 0 no drift, 3 drift, or a host or resource could not be checked. Resources that are not
checked only because the bundle is missing do not change the exit code.`,
		Example: `  kubexm diff -f config.yaml
  kubexm diff -f config.yaml --bundle demo.tar.zst --key cosign.pub
  kubexm diff -f config.yaml -o json | jq '.drift[].name'`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDiff(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", useConfig)
	fs.StringVarP(&f.bundle, "bundle", "b", "", useBundle)
	fs.StringVar(&f.workdir, "workdir", ".", useWorkdir)
	fs.IntVarP(&f.parallel, "parallel", "p", 32, useParallel+"hosts")
	_ = cmd.MarkFlagRequired("filename")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagFilename("bundle", "tar.zst", "001")
	f.policyFlags.add(cmd)
	f.baseFlags.add(cmd)
	f.addDial(cmd)
	a.outputFlag(cmd, "table", "wide", "json", "yaml", "name")
	return cmd
}

func (a *app) runDiff(ctx context.Context, f *siteFlags) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	c, err := a.loadCluster(f.config, "")
	if err != nil {
		return err
	}
	c.ResolvePaths(folderOf(f.config))
	c.TrustHostKeys(f.hostKeys)
	if err := installer.CheckWorkdir(f.workdir, c.Metadata.Name); err != nil {
		return err
	}
	o := a.options(f.workdir, f.parallel, c)
	if f.bundle != "" {
		policy, err := a.policy(&f.policyFlags, c)
		if err != nil {
			return err
		}
		if o.Bundle, err = bundle.OpenPartial(ctx, f.bundle, policy, bundle.Bases{Explicit: f.bases}); err != nil {
			return report.Refused(err)
		}
		defer o.Bundle.Close()
		if err := installer.FindBases(ctx, o.Bundle, f.workdir, c.Metadata.Name); err != nil {
			return report.Refused(err)
		}
	}
	session, unreached, err := installer.ReachRecorded(ctx, o)
	if err != nil {
		return diffRefused(err)
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	found, err := session.Drift(ctx)
	if err != nil {
		return err
	}
	return a.reportDrift(session.Cluster, slices.Concat(unreached.Drifts(), found))
}

// diffRefused adds the exit code and advice to an error of opening the session.
func diffRefused(err error) error {
	var other *state.OtherClusterError
	var bundle *installer.OtherBundleError
	switch {
	case errors.As(err, &bundle):
		return &refusal.Error{Err: err, Kind: refusal.Content, Advice: bundle.Advice(), Code: report.CodeConfigMismatch}
	case errors.As(err, &other):
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: other.Advice()}
	case errors.Is(err, installer.ErrNoRecord):
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: "create the cluster: kubexm install ARCHIVE"}
	}
	return err
}

// driftReport is the output with -o json.
type driftReport struct {
	Cluster string            `json:"cluster"`
	Same    bool              `json:"same"` // no drift, and everything was checked that the bundle allows to check
	Drift   []installer.Drift `json:"drift"`
}

// reportDrift prints drift by host, and returns the error that sets the exit code.
func (a *app) reportDrift(c *manifest.Cluster, found []installer.Drift) error {
	place := func(d installer.Drift) int {
		return slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return h.Name == d.Host })
	}
	slices.SortStableFunc(found, func(x, y installer.Drift) int { return cmp.Compare(place(x), place(y)) })
	same := !slices.ContainsFunc(found, installer.Drift.Counts)
	if err := a.printDrift(driftReport{Cluster: c.Metadata.Name, Same: same, Drift: found}, c); err != nil || same {
		return err
	}
	return &refusal.Error{Kind: refusal.Hosts, Err: errReported}
}

func (a *app) printDrift(r driftReport, c *manifest.Cluster) error {
	switch a.output {
	case "json", "yaml":
		if r.Drift == nil {
			r.Drift = []installer.Drift{}
		}
		return a.printValue(r)
	case "name":
		for _, d := range r.Drift {
			fmt.Fprintf(a.out, "%s %s\n", d.Host, d.Name)
		}
		return nil
	}
	differs, unseen := map[string]bool{}, 0
	cells := [][]string{{"HOST", "KIND", "WHAT", "FOUND"}}
	if a.output == "wide" {
		cells[0] = slices.Insert(cells[0], 2, "STEP")
	}
	for _, d := range r.Drift {
		text := "differs: " + firstLine(d.What) + " would correct it"
		if len(d.Blocks) > 0 {
			text += "; cannot be checked before: " + strings.Join(d.Blocks, ", ")
		}
		if d.NotChecked != "" {
			unseen++
			text = d.NotChecked
		} else {
			differs[d.Host] = true
		}
		row := []string{d.Host, d.Kind, d.Name, firstLine(text)}
		if a.output == "wide" {
			row = slices.Insert(row, 2, cmp.Or(d.Step, "-"))
			if d.Diff != "" {
				row[len(row)-1] += "\n" + d.Diff
			}
		}
		cells = append(cells, row)
	}
	if len(r.Drift) > 0 {
		a.printDriftCells(cells)
	}
	fmt.Fprintf(a.out, "%s of %s differ from what was applied: %d differences, %d not checked; nothing was changed\n",
		fmt.Sprint(len(differs)), console.FormatCount(len(c.Spec.Hosts), "host"), len(r.Drift)-unseen, unseen)
	return nil
}

// printDriftCells writes the table, with a row's diff lines below it.
func (a *app) printDriftCells(rows [][]string) {
	var under []string
	for i, r := range rows {
		head, lines, _ := strings.Cut(r[len(r)-1], "\n")
		rows[i][len(r)-1] = head
		under = append(under, lines)
	}
	if !slices.ContainsFunc(under, func(s string) bool { return s != "" }) {
		console.PrintTable(a.out, rows, a.tableWidth(a.out))
		return
	}
	for i := range rows {
		console.PrintTable(a.out, rows[i:i+1], 0)
		if under[i] != "" {
			fmt.Fprintf(a.out, "    %s\n", strings.ReplaceAll(under[i], "\n", "\n    "))
		}
	}
}

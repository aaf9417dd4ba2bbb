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

// diffCommand is the command that tells what of a cluster is not as it was applied.
func (a *app) diffCommand() *cobra.Command {
	f := &siteFlags{}
	cmd := &cobra.Command{
		Use: "diff -f CONFIG", Args: cobra.NoArgs, Short: "Tell what on a cluster's hosts is not as it was applied",
		Long: `Hold every host against the record of what was applied: its files by digest, its units, its kernel
settings, the cluster's objects. What has been changed by another hand since then is listed by host,
with what would mend it. Nothing is changed on any host. What counts is the record, in the cluster or
in the workdir; the config says how hosts are reached. What was edited in it since then is no drift.

Files of the bundle are held against its lock. Without --bundle that is the bundle which was applied,
where it still lies on this machine, or the lock that the workdir keeps of it. What needs more than
that is listed as not looked at.

Exit code 0 says that nothing differs, 3 that something does, or that a host or a part of it could not
be looked at. What is not looked at for want of a bundle alone does not count.`,
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
	c.PlaceFiles(folderOf(f.config))
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
		if o.Bundle, err = bundle.OpenPart(ctx, f.bundle, policy, bundle.Bases{Given: f.bases}); err != nil {
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
	return a.tellDrift(session.Cluster, slices.Concat(unreached.Drifts(), found))
}

// diffRefused gives an error of the opening its exit code.
func diffRefused(err error) error {
	var other *state.OtherClusterError
	var bundle *installer.OtherBundleError
	switch {
	case errors.As(err, &bundle):
		return &refusal.Error{Err: err, Kind: refusal.Content, Advice: bundle.Advice(), Word: report.WordLacks}
	case errors.As(err, &other):
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: other.Advice()}
	case errors.Is(err, installer.ErrNoRecord):
		return &refusal.Error{Err: err, Kind: refusal.Hosts, Advice: "make the cluster: kubexm install ARCHIVE"}
	}
	return err
}

// driftReport is what programs read.
type driftReport struct {
	Cluster string            `json:"cluster"`
	Same    bool              `json:"same"` // nothing differs, and all was looked at that the bundle lets look at
	Drift   []installer.Drift `json:"drift"`
}

// tellDrift prints what was found, by host, and ends the command.
func (a *app) tellDrift(c *manifest.Cluster, found []installer.Drift) error {
	place := func(d installer.Drift) int {
		return slices.IndexFunc(c.Spec.Hosts, func(h manifest.Host) bool { return h.Name == d.Host })
	}
	slices.SortStableFunc(found, func(x, y installer.Drift) int { return cmp.Compare(place(x), place(y)) })
	same := !slices.ContainsFunc(found, installer.Drift.Counts)
	if err := a.printDrift(driftReport{Cluster: c.Metadata.Name, Same: same, Drift: found}, c); err != nil || same {
		return err
	}
	return &refusal.Error{Kind: refusal.Hosts, Err: errSaid}
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
		says := "differs: " + firstLine(d.What) + " would mend it"
		if len(d.Hides) > 0 {
			says += "; cannot be told until then: " + strings.Join(d.Hides, ", ")
		}
		if d.Unseen != "" {
			unseen++
			says = d.Unseen
		} else {
			differs[d.Host] = true
		}
		row := []string{d.Host, d.Kind, d.Name, firstLine(says)}
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
	fmt.Fprintf(a.out, "%s of %s differ from what was applied: %d in all, %d not looked at; nothing was changed\n",
		fmt.Sprint(len(differs)), console.Count(len(c.Spec.Hosts), "host"), len(r.Drift)-unseen, unseen)
	return nil
}

// printDriftCells writes the table; lines that come and go stand under their row.
func (a *app) printDriftCells(rows [][]string) {
	var under []string
	for i, r := range rows {
		head, lines, _ := strings.Cut(r[len(r)-1], "\n")
		rows[i][len(r)-1] = head
		under = append(under, lines)
	}
	if !slices.ContainsFunc(under, func(s string) bool { return s != "" }) {
		console.PrintCells(a.out, rows, a.tableWidth(a.out))
		return
	}
	for i := range rows {
		console.PrintCells(a.out, rows[i:i+1], 0)
		if under[i] != "" {
			fmt.Fprintf(a.out, "    %s\n", strings.ReplaceAll(under[i], "\n", "\n    "))
		}
	}
}

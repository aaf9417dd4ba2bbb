package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/audit"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show what was done to hosts, and prove that the log is complete",
		Long: `Every command that kubexm runs on a host, every file it writes and every connection it makes there
is a line of .kubexm/<cluster>/audit.jsonl: when, who, which step, which command, with what outcome.
Each line holds the hash of the line before.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.auditShow(), a.auditVerify())
	return cmd
}

// clusterFlags say which cluster's folder is meant.
type clusterFlags struct{ config, cluster, workdir string }

func (f *clusterFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "for the cluster's name"))
	fs.StringVar(&f.cluster, "cluster", "", "the cluster's name (default the only one that has a folder)")
	fs.StringVar(&f.workdir, "workdir", ".", useWorkdir)
	cmd.MarkFlagsMutuallyExclusive("filename", "cluster")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagDirname("workdir")
}

// folder gives the folder of the cluster that is meant.
func (f *clusterFlags) folder(a *app) (installer.Workdir, error) {
	if f.config == "" {
		return installer.FindWorkdir(f.workdir, f.cluster)
	}
	c, err := a.loadCluster(f.config, "")
	if err != nil {
		return installer.Workdir{}, err
	}
	return installer.FindWorkdir(f.workdir, c.Metadata.Name)
}

func (a *app) auditShow() *cobra.Command {
	f := &clusterFlags{}
	var since string
	var filter audit.Filter
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what was done to hosts",
		Long: `Print the audit log, one line for each command on each host, the oldest first. What was masked in
the log is masked here. With -o json the lines are printed as they stand there, as one array.`,
		Example: `  kubexm audit show --changes                        # all but looks
  kubexm audit show --host m1 --since 2h
  kubexm audit show --step kubeadm. --since 2026-01-31T08:00:00Z
  kubexm audit show -o json | jq '.[] | select(.exit != 0 and .exit != null)'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var err error
			if filter.Since, err = audit.ParseSince(since, time.Now()); err != nil {
				return err
			}
			w, err := f.folder(a)
			if err != nil {
				return err
			}
			return a.showAudit(w, filter)
		},
	}
	f.add(cmd)
	cmd.Flags().StringSliceVar(&filter.Hosts, "host", nil, "of these hosts alone")
	cmd.Flags().StringVar(&filter.Step, "step", "", "of steps alone whose id in the plan holds this")
	cmd.Flags().StringVar(&since, "since", "", "only what is newer than this: 90m, 24h, or a time as 2026-01-31T08:00:00Z")
	cmd.Flags().BoolVar(&filter.Changes, "changes", false, "leave out what only looks")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

func (a *app) showAudit(w installer.Workdir, filter audit.Filter) error {
	if err := w.CheckHosts(filter.Hosts); err != nil {
		return err
	}
	log, err := w.OpenAudit()
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // read only: nothing to lose
	if !a.structured() {
		return audit.Show(log, filter, func(x audit.Line, _ []byte) error {
			_, err := fmt.Fprintln(a.out, x.String())
			return err
		})
	}
	if a.output == "yaml" {
		lines := []json.RawMessage{}
		if err := audit.Show(log, filter, func(_ audit.Line, text []byte) error {
			lines = append(lines, bytes.Clone(text))
			return nil
		}); err != nil {
			return err
		}
		return a.printValue(lines)
	}
	before := "[\n"
	err = audit.Show(log, filter, func(_ audit.Line, text []byte) error {
		_, err := fmt.Fprintf(a.out, "%s%s", before, text)
		before = ",\n"
		return err
	})
	end := "\n]"
	if before == "[\n" { // there was none
		end = "[]"
	}
	_, said := fmt.Fprintln(a.out, end)
	return errors.Join(err, said)
}

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
		Short: "Show the audit log, and verify that it is complete",
		Long: `kubexm logs every command that it runs on a host, every file that it writes and every connection
that it opens. Each is one line of .kubexm/<cluster>/audit.jsonl, with the time, the user, the step,
the command and the outcome. Each line contains the hash of the previous line.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.auditShow(), a.auditVerify())
	return cmd
}

// clusterFlags select a cluster's folder in the workdir.
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

// folder returns the folder of the selected cluster.
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
		Short: "Show which commands were run on hosts",
		Long: `Print the audit log, one line for each command on each host, oldest first. Values that are masked in
the log stay masked. With -o json the log's lines are printed unchanged, as one array.`,
		Example: `  kubexm audit show --changes                  # without read-only commands
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
	cmd.Flags().StringSliceVar(&filter.Hosts, "host", nil, "only commands on these hosts")
	cmd.Flags().StringVar(&filter.Step, "step", "", "only steps whose id in the plan contains this text")
	cmd.Flags().StringVar(&since, "since", "", "only what is newer than this: 90m, 24h, or a time such as 2026-01-31T08:00:00Z")
	cmd.Flags().BoolVar(&filter.ChangesOnly, "changes", false, "leave out read-only commands")
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
	defer func() { _ = log.Close() }() // opened read-only: no data can be lost
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
	if before == "[\n" { // no line matched
		end = "[]"
	}
	_, written := fmt.Fprintln(a.out, end)
	return errors.Join(err, written)
}

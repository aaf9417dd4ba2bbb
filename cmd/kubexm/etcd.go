package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps/etcd"
)

func (a *app) etcdCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "etcd", Short: "Show and operate the etcd members of a cluster", Args: cobra.NoArgs}
	cmd.AddCommand(a.etcdStatus(), a.etcdAlarm())
	return cmd
}

func (a *app) etcdStatus() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "status -f CONFIG", Short: "Show the etcd members, their leader and the size of their data", Args: cobra.NoArgs,
		Long: `List the etcd members with role, version and size of the database. The members are queried through the first
one that answers. IN USE is the part of SIZE that holds data; the rest is freed by defragmenting. LOG INDEX, in
-o wide, is the last entry of the log that a member has applied: members of a healthy cluster are a few apart.

The exit code is 1 unless every member votes, answers, knows a leader and has no alarm.`,
		Example: "  kubexm etcd status -f config.yaml\n  kubexm etcd status -f config.yaml -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := a.storeReport(cmd.Context(), f)
			if err != nil {
				return err
			}
			l := listing{kind: "member", narrow: 6, values: r, head: []string{"MEMBER", "ROLE", "STATE", "VERSION", "SIZE", "IN USE", "ID", "LOG INDEX", "URL"}}
			for _, m := range r.Members {
				row := []string{m.Name, m.Role, strings.Join(m.Errors, ", "), m.Version, "", "", m.ID, "", strings.Join(m.URLs, ",")}
				if m.Healthy {
					row[2] = "healthy"
				}
				if m.Role != "" {
					row[4], row[5], row[7] = mebibytes(m.Size), mebibytes(m.InUse), fmt.Sprint(m.Index)
				}
				l.rows = append(l.rows, row)
			}
			if err := a.show(l); err != nil {
				return err
			}
			if r.Whole() {
				return nil
			}
			fmt.Fprintf(a.err, "note: %d of %d voting members are healthy; etcd needs %d\n", r.Healthy, r.Voters, r.Quorum)
			return &refusal.Error{Kind: refusal.Failed, Err: errReported}
		},
	}
	f.add(a, cmd, true, "")
	return cmd
}

// mebibytes returns a number of bytes for people.
func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// storeReport queries the etcd cluster of a config.
func (a *app) storeReport(ctx context.Context, f *getFlags) (out etcd.Report, err error) {
	err = a.onMembers(ctx, f.config, f.workdir, func(c *manifest.Cluster, s *installer.Session, unreached installer.HostErrors) error {
		out, err = installer.StoreReport(ctx, c, s.Host, unreached)
		return err
	})
	return out, err
}

// onMembers calls do with a session that reaches the hosts of etcd's members.
func (a *app) onMembers(ctx context.Context, config, workdir string, do func(*manifest.Cluster, *installer.Session, installer.HostErrors) error) (err error) {
	c, err := a.loadCluster(config, "")
	if err != nil {
		return err
	}
	if part.StoreOf(c).Kind == part.External {
		return &refusal.Error{Kind: refusal.Usage, Err: errors.New("spec.etcd.type is external: kubexm does not manage its members"), Advice: "run etcdctl against spec.etcd.external.endpoints"}
	}
	only := *c
	only.Spec.Hosts = slices.DeleteFunc(slices.Clone(c.Spec.Hosts), func(h manifest.Host) bool { return !part.Members.In(c, h.Name) })
	session, unreached, err := installer.Reach(ctx, a.readOptions(workdir, &only))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	return do(c, session, unreached)
}

// etcdAlarm returns the command that lists alarms, or disarms them with a pipeline.
func (a *app) etcdAlarm() *cobra.Command {
	cmd := a.pipelineCommand(pipeline.DisarmEtcd())
	disarms := false
	cmd.Flags().BoolVar(&disarms, "disarm", false, "disarm the alarms, instead of listing them")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if disarms {
			return run(cmd, args)
		}
		value := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
		if value("filename") == "" {
			return &refusal.Error{Err: errors.New("-f is missing"), Kind: refusal.Usage, Advice: "specify the config with -f"}
		}
		return a.listAlarms(cmd.Context(), value("filename"), value("workdir"))
	}
	return cmd
}

// listAlarms prints etcd's alarms.
func (a *app) listAlarms(ctx context.Context, config, workdir string) error {
	l := listing{kind: "alarm", narrow: 2, head: []string{"MEMBER", "ALARM"}, nothing: "no alarms"}
	err := a.onMembers(ctx, config, workdir, func(c *manifest.Cluster, s *installer.Session, unreached installer.HostErrors) error {
		all, err := installer.StoreAlarms(ctx, c, s.Host, unreached)
		for _, x := range all {
			l.rows = append(l.rows, []string{x.Name, x.Kind})
		}
		l.values = all
		return err
	})
	if err != nil {
		return err
	}
	if err := a.show(l); err != nil || len(l.rows) == 0 {
		return err
	}
	return &refusal.Error{Kind: refusal.Hosts, Err: errReported}
}

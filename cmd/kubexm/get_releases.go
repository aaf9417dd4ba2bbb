package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) getReleases() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "releases -f CONFIG", Short: "Show the release of each host", Args: cobra.NoArgs,
		Long: `Read from each host which release was last applied to it: the release, the previous one, the operation
and the time. kubexm records this on the host at the end of an operation; it does not prove what runs
now. -o wide, json and yaml include the components.

A host that does not answer is listed as unknown, and the exit code is 1.`,
		Example: "  kubexm get releases -f config.yaml\n  kubexm get releases -f config.yaml -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			views, err := a.releases(cmd.Context(), f)
			if err != nil {
				return err
			}
			l := listing{
				kind: "host", narrow: 6, values: views, nothing: "the config has no hosts",
				head: []string{"HOST", "ROLES", "RELEASE", "BEFORE", "OPERATION", "SINCE", "COMPONENTS"},
			}
			failed := false
			for _, v := range views {
				r := []string{v.Host, strings.Join(v.Roles, ","), "", "", "", "", ""}
				switch {
				case v.Error != "":
					failed = true
					r[2] = "unknown"
					fmt.Fprintf(a.err, "note: %s\n", v.Error)
				case v.Release != nil:
					r[2], r[3], r[4], r[5] = v.Set, v.Before, v.Operation, v.Time.Format(time.RFC3339)
					var have []string
					for _, name := range sortedKeys(v.Components) {
						have = append(have, name+"="+v.Components[name].Version)
					}
					r[6] = strings.Join(have, " ")
				}
				l.rows = append(l.rows, r)
			}
			if err := a.show(l); err != nil || !failed {
				return err
			}
			return &refusal.Error{Kind: refusal.Failed, Err: errReported}
		},
	}
	f.add(a, cmd, true, "")
	return cmd
}

// releases reads the releases of all hosts of a config, in the config's order.
func (a *app) releases(ctx context.Context, f *getFlags) (out []installer.HostRelease, err error) {
	c, err := a.loadCluster(f.config, "")
	if err != nil {
		return nil, err
	}
	session, unreached, err := installer.Reach(ctx, a.readOptions(f.workdir, c))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	return session.Releases(ctx, unreached)
}

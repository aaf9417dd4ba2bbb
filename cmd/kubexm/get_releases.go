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
		Use: "releases -f CONFIG", Short: "Show which release each host has", Args: cobra.NoArgs,
		Long: `Ask each host what was last brought to it: the release, the one before, the operation and when. It is
what kubexm wrote down there at the end, and no proof of what runs now. -o wide, json and yaml name
the components.

A host that does not answer is listed as such, and ends the command with exit code 1.`,
		Example: "  kubexm get releases -f config.yaml\n  kubexm get releases -f config.yaml -o wide",
		RunE: func(cmd *cobra.Command, _ []string) error {
			views, err := a.releases(cmd.Context(), f)
			if err != nil {
				return err
			}
			l := listing{
				kind: "host", narrow: 6, values: views, nothing: "the config names no host",
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
			return &refusal.Error{Kind: refusal.Failed, Err: errSaid}
		},
	}
	f.add(a, cmd, true, "")
	return cmd
}

// releases asks all hosts of a config, in its order.
func (a *app) releases(ctx context.Context, f *getFlags) (out []installer.HostRelease, err error) {
	c, err := a.loadCluster(f.config, "")
	if err != nil {
		return nil, err
	}
	session, unreached, err := installer.Reach(ctx, a.lookOptions(f.workdir, c))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	return session.Releases(ctx, unreached)
}

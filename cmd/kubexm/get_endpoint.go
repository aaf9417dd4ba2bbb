package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/manifest/refusal"
)

func (a *app) getEndpoint() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "endpoint -f CONFIG", Short: "Show the load balancers and the API servers behind them", Args: cobra.NoArgs,
		Long: `Show which host holds the virtual IP, which API servers are in use, and since when. A load balancer host is
active, standby, fault (keepalived or its check failed) or stopped. A master with kube-vip is active, standby
or stopped. A load balancer on a worker is running or stopped. An API server is up or down as haproxy on the
active host sees it. Where no load balancer host of kubexm checks API servers, kubexm requests /readyz from
each of them: it is ready or not ready.

The exit code is 1 unless one host holds the virtual IP and everything else is standby, running, up or ready.`,
		Example: "  kubexm get endpoint -f config.yaml\n  kubexm get endpoint -f config.yaml -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := a.endpoint(cmd.Context(), f)
			if err != nil {
				return err
			}
			l := listing{kind: "host", narrow: 5, values: e, head: []string{"HOST", "RUNS", "ADDRESS", "STATE", "SINCE", "CHECK", "CHECKED BY"}}
			var notes []string
			for _, b := range e.Balancers {
				l.rows = append(l.rows, []string{b.Host, cmp.Or(b.Program, "load balancer"), b.Address, b.String(), since(b.Since), "", ""})
				notes = append(notes, b.Error)
			}
			for _, b := range e.Workers {
				l.rows = append(l.rows, []string{b.Host, "load balancer", b.Address, b.String(), "", "", ""})
				notes = append(notes, b.Error)
			}
			for _, s := range e.Servers {
				l.rows = append(l.rows, []string{s.Host, "API server", s.Address, s.State, since(s.Since), s.Check, s.By})
				notes = append(notes, s.Error)
			}
			if err := a.show(l); err != nil {
				return err
			}
			if e.VIP != "" && len(e.Holders) != 1 {
				notes = append(notes, fmt.Sprintf("the virtual IP %s is on %s", e.VIP, cmp.Or(strings.Join(e.Holders, " and "), "no host")))
			}
			slices.Sort(notes)
			for _, n := range slices.Compact(notes) {
				if n != "" {
					fmt.Fprintf(a.err, "note: %s\n", n)
				}
			}
			if e.Healthy() {
				return nil
			}
			return &refusal.Error{Kind: refusal.Failed, Err: errReported}
		},
	}
	f.add(a, cmd, true, "")
	return cmd
}

func since(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

// endpoint reads the state of the endpoint from the load balancer hosts and the masters.
func (a *app) endpoint(ctx context.Context, f *getFlags) (out installer.EndpointStatus, err error) {
	c, err := a.loadCluster(f.config, "")
	if err != nil {
		return out, err
	}
	if err := hasMaster(c); err != nil {
		return out, err
	}
	only := *c
	only.Spec.Hosts = part.Masters.Hosts(c)
	balancers := part.WorkerBalancers.Hosts(c)
	if part.EndpointOf(c).Front == part.HostsFront {
		balancers = append(balancers, part.Balancers.Hosts(c)...)
	}
	for _, b := range balancers {
		if !slices.ContainsFunc(only.Spec.Hosts, func(m manifest.Host) bool { return m.Name == b.Name }) {
			only.Spec.Hosts = append(only.Spec.Hosts, b)
		}
	}
	session, unreached, err := installer.Reach(ctx, a.readOptions(f.workdir, &only))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	return session.Endpoint(ctx, unreached)
}

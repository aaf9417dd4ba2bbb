package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
)

// lookOptions are those of a session that only looks at hosts of c.
func (a *app) lookOptions(workdir string, c *manifest.Cluster) installer.Options {
	o := a.options(workdir, 16, c)
	o.Log = slog.New(slog.DiscardHandler)
	return o
}

// hasMaster refuses a config without a master.
func hasMaster(c *manifest.Cluster) error {
	if len(c.HostsWith(manifest.RoleMaster)) == 0 {
		return &refusal.Error{Err: errors.New("the config has no master"), Kind: refusal.Usage}
	}
	return nil
}

// onMaster does something on a master of a cluster that exists: the first whose API
// server answers. Those before it are named on standard error.
func (a *app) onMaster(ctx context.Context, workdir string, c *manifest.Cluster, do func(context.Context, *steps.Host) error) error {
	if err := hasMaster(c); err != nil {
		return err
	}
	session, h, passed, err := installer.ReachLead(ctx, a.lookOptions(workdir, c))
	if none, ok := errors.AsType[*installer.NoClusterError](err); ok {
		return &refusal.Error{Err: none, Kind: refusal.Failed, Advice: "make it: kubexm install ARCHIVE"}
	}
	if err != nil {
		return err
	}
	defer session.Close()
	for _, e := range passed {
		fmt.Fprintf(a.err, "note: %v; asked %s instead\n", e, h.Name)
	}
	return do(ctx, h)
}

// onRecords does something with a session for what is remembered of a cluster. Masters
// that do not answer are named on standard error.
func (a *app) onRecords(ctx context.Context, workdir string, c *manifest.Cluster, do func(*installer.Session) error) (err error) {
	if err := hasMaster(c); err != nil {
		return err
	}
	session, passed, err := installer.ReachRecords(ctx, a.lookOptions(workdir, c))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	a.note(passed)
	return do(session)
}

// onMasters does something with a session that reaches all masters of a cluster that
// answer, for what is written on each; the others are named on standard error. No other
// run may work on the cluster meanwhile.
func (a *app) onMasters(ctx context.Context, workdir string, c *manifest.Cluster, do func(*installer.Session) error) (err error) {
	if err := hasMaster(c); err != nil {
		return err
	}
	only := *c
	only.Spec.Hosts = c.HostsWith(manifest.RoleMaster)
	o := a.lookOptions(workdir, &only)
	o.Alone = true
	session, unreached, err := installer.Reach(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	a.note(unreached)
	return do(session)
}

// note names hosts that a command goes on without.
func (a *app) note(unreached installer.HostErrors) {
	for _, e := range unreached {
		fmt.Fprintf(a.err, "note: %v\n", e)
	}
}

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

// readOptions returns the options of a session that only reads from hosts of c.
func (a *app) readOptions(workdir string, c *manifest.Cluster) installer.Options {
	o := a.options(workdir, 16, c)
	o.Log = slog.New(slog.DiscardHandler)
	return o
}

// hasMaster returns an error for a config without a master.
func hasMaster(c *manifest.Cluster) error {
	if len(c.HostsWith(manifest.RoleMaster)) == 0 {
		return &refusal.Error{Err: errors.New("the config has no master"), Kind: refusal.Usage}
	}
	return nil
}

// onMaster calls do with the first master of an existing cluster whose API server
// answers. The masters that were tried before are reported on standard error.
func (a *app) onMaster(ctx context.Context, workdir string, c *manifest.Cluster, do func(context.Context, *steps.Host) error) error {
	if err := hasMaster(c); err != nil {
		return err
	}
	session, h, passed, err := installer.ReachLead(ctx, a.readOptions(workdir, c))
	if none, ok := errors.AsType[*installer.NoClusterError](err); ok {
		return &refusal.Error{Err: none, Kind: refusal.Failed, Advice: "create it: kubexm install ARCHIVE"}
	}
	if err != nil {
		return err
	}
	defer session.Close()
	for _, e := range passed {
		fmt.Fprintf(a.err, "note: %v; using %s instead\n", e, h.Name)
	}
	return do(ctx, h)
}

// onRecords calls do with a session that reads a cluster's records. Masters that do not
// answer are reported on standard error.
func (a *app) onRecords(ctx context.Context, workdir string, c *manifest.Cluster, do func(*installer.Session) error) (err error) {
	if err := hasMaster(c); err != nil {
		return err
	}
	session, passed, err := installer.ReachRecords(ctx, a.readOptions(workdir, c))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	a.note(passed)
	return do(session)
}

// onMasters calls do with a session that reaches all masters that answer, to write to
// each of them; the others are reported on standard error. It holds the cluster's lock,
// so no other run can change the cluster at the same time.
func (a *app) onMasters(ctx context.Context, workdir string, c *manifest.Cluster, do func(*installer.Session) error) (err error) {
	if err := hasMaster(c); err != nil {
		return err
	}
	only := *c
	only.Spec.Hosts = c.HostsWith(manifest.RoleMaster)
	o := a.readOptions(workdir, &only)
	o.Exclusive = true
	session, unreached, err := installer.Reach(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	a.note(unreached)
	return do(session)
}

// note reports hosts that a command continues without.
func (a *app) note(unreached installer.HostErrors) {
	for _, e := range unreached {
		fmt.Fprintf(a.err, "note: %v\n", e)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/runner"
)

// lookOptions are those of a session that only looks at hosts of c.
func (a *app) lookOptions(workdir string, c *manifest.Cluster) installer.Options {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	return installer.Options{Cluster: c, Base: workdir, Log: slog.New(slog.DiscardHandler), LookupEnv: a.env, Home: home, Parallel: 16, Version: ownVersion()}
}

// masters gives the masters of a config, first the one that the last operation went
// through, as far as this machine knows.
func masters(c *manifest.Cluster, workdir string) ([]manifest.Host, error) {
	all := slices.Clone(c.HostsWith(manifest.RoleMaster))
	if len(all) == 0 {
		return nil, &coded{error: errors.New("the config has no master"), code: exitUsage}
	}
	e, err := state.Here(filepath.Join(workdir, ".kubexm", c.Metadata.Name))
	if err != nil || e == nil {
		return all, err
	}
	slices.SortStableFunc(all, func(x, y manifest.Host) int {
		switch e.Lead {
		case x.Name:
			return -1
		case y.Name:
			return 1
		}
		return 0
	})
	return all, nil
}

// onMaster does something on a master of a cluster that exists: on the first that is
// reached and whose commands end well. Those before it are named on standard error.
func (a *app) onMaster(ctx context.Context, workdir string, c *manifest.Cluster, do func(context.Context, *steps.Host) error) error {
	all, err := masters(c, workdir)
	if err != nil {
		return err
	}
	var failed []error
	var bare []string
	for _, m := range all {
		err := a.onHost(ctx, workdir, c, m, do)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errBare):
			bare = append(bare, m.Name)
		case errors.As(err, new(*installer.HostError)):
			failed = append(failed, err)
		case err != nil:
			return err
		default:
			for _, f := range failed {
				fmt.Fprintf(a.err, "note: %v; asked %s instead\n", f, m.Name)
			}
			return nil
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return &coded{error: fmt.Errorf("there is no cluster on %s", strings.Join(bare, ", ")), code: exitFailed, advice: "make it: kubexm install ARCHIVE"}
}

// errBare is of a host that has no control plane.
var errBare = errors.New("there is no control plane on it")

// onHost does something on one master.
func (a *app) onHost(ctx context.Context, workdir string, c *manifest.Cluster, m manifest.Host, do func(context.Context, *steps.Host) error) error {
	only := *c
	only.Spec.Hosts = []manifest.Host{m}
	session, err := installer.Open(ctx, a.lookOptions(workdir, &only))
	if err != nil {
		return err
	}
	defer session.Close()
	h := session.Host(m)
	switch _, err := h.Stat(ctx, kubectl.AdminConf); {
	case errors.Is(err, fs.ErrNotExist):
		return errBare
	case err != nil:
		return &installer.HostError{Host: m.Name, Address: m.Address, Err: err}
	}
	err = do(ctx, h)
	if errors.As(err, new(*runner.CmdError)) {
		return &installer.HostError{Host: m.Name, Address: m.Address, Err: err}
	}
	return err
}

// onMasters does something with a session that reaches all masters of a cluster that
// answer; the others are named on standard error. Where alone is set no other run may
// work on the cluster.
func (a *app) onMasters(ctx context.Context, workdir string, c *manifest.Cluster, alone bool, do func(*installer.Session, *manifest.Cluster) error) (err error) {
	all, err := masters(c, workdir)
	if err != nil {
		return err
	}
	only := *c
	only.Spec.Hosts = all
	o := a.lookOptions(workdir, &only)
	o.Alone = alone
	session, unreached, err := installer.Reach(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	for _, e := range unreached {
		fmt.Fprintf(a.err, "note: %v\n", e)
	}
	return do(session, &only)
}

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
)

// onMaster does something on a master of a cluster that exists: the first whose API
// server answers.
func (a *app) onMaster(ctx context.Context, f *siteFlags, c *manifest.Cluster, do func(context.Context, *steps.Host) error) error {
	if len(c.HostsWith(manifest.RoleMaster)) == 0 {
		return &coded{error: errors.New("the config has no master"), code: exitUsage}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	session, h, err := installer.ReachLead(ctx, installer.Options{Cluster: c, Base: f.workdir, Log: slog.New(slog.DiscardHandler), LookupEnv: a.env, Home: home, Parallel: 1, Version: ownVersion()})
	if none, ok := errors.AsType[*installer.NoClusterError](err); ok {
		return &coded{error: none, code: exitFailed, advice: "make it: kubexm install ARCHIVE"}
	}
	if err != nil {
		return err
	}
	defer session.Close()
	return do(ctx, h)
}

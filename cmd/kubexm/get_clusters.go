package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/state"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// clusterView is what get shows of a cluster.
type clusterView struct {
	Name       string            `json:"name"`
	Release    string            `json:"release"` // "" where the creation has not ended
	Masters    int               `json:"masters"`
	Hosts      int               `json:"hosts"`
	Operation  string            `json:"operation,omitempty"` // that is open
	Serial     int64             `json:"serial"`
	Lead       string            `json:"lead,omitempty"`
	Away       []string          `json:"away,omitempty"` // hosts that the last operation went without
	Revision   int64             `json:"revision"`
	Bundle     string            `json:"bundle,omitempty"`
	Lock       string            `json:"lock,omitempty"`
	Config     string            `json:"config,omitempty"` // "sha256:…"
	Highest    int64             `json:"highest"`
	Components map[string]string `json:"components,omitempty"`
}

func (a *app) getClusters() *cobra.Command {
	f := &getFlags{}
	cmd := &cobra.Command{
		Use: "clusters [-f CONFIG]", Aliases: []string{"cluster"}, Short: "Show clusters and what was applied to them", Args: cobra.NoArgs,
		Long: `List the clusters whose folders lie in --workdir, with what was applied to them as far as this machine
knows; no host is called.

With -f that one cluster is asked: an API server first, then the copies of its record on masters,
then the folder here. Any master that answers will do.`,
		Example: "  kubexm get clusters\n  kubexm get clusters -f config.yaml -o yaml",
		RunE: func(cmd *cobra.Command, _ []string) error {
			views, err := a.clusters(cmd.Context(), f)
			if err != nil {
				return err
			}
			l := listing{
				kind: "cluster", narrow: 6, values: views, nothing: "no cluster has a folder below " + filepath.Join(f.workdir, ".kubexm"),
				head: []string{"NAME", "RELEASE", "MASTERS", "HOSTS", "SERIAL", "OPERATION", "LEAD", "REVISION", "BUNDLE"},
			}
			for _, v := range views {
				l.rows = append(l.rows, []string{v.Name, v.Release, strconv.Itoa(v.Masters), strconv.Itoa(v.Hosts), strconv.FormatInt(v.Serial, 10), v.Operation,
					v.Lead, strconv.FormatInt(v.Revision, 10), v.Bundle})
			}
			return a.show(l)
		},
	}
	f.add(a, cmd, false, "without it the clusters of --workdir are listed")
	return cmd
}

// clusters gives the cluster that -f names, or all of the workdir.
func (a *app) clusters(ctx context.Context, f *getFlags) ([]clusterView, error) {
	if f.config != "" {
		c, err := a.loadCluster(f.config, "")
		if err != nil {
			return nil, err
		}
		v, err := a.clusterAsked(ctx, f, c)
		return []clusterView{v}, err
	}
	folders, err := clusterFolders(f.workdir)
	if err != nil {
		return nil, err
	}
	out := []clusterView{}
	for _, name := range folders {
		dir := filepath.Join(f.workdir, ".kubexm", name)
		known, err := state.Here(dir)
		if err != nil {
			return nil, err
		}
		open, err := cluster.OperationHere(dir)
		if err != nil {
			return nil, err
		}
		v, err := viewOf(name, known, open)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// clusterFolders names the clusters that have a folder in a workdir, sorted.
func clusterFolders(workdir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(workdir, ".kubexm"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// clusterAsked asks the masters of a cluster for its record, and what is open on it.
func (a *app) clusterAsked(ctx context.Context, f *getFlags, c *manifest.Cluster) (v clusterView, err error) {
	err = a.onRecords(ctx, f.workdir, c, func(session *installer.Session) error {
		e, err := state.Exists(ctx, c, session.Workdir.Dir, session.Host)
		if err != nil {
			return err
		}
		open, err := state.Operation(ctx, c, session.Workdir.Dir, session.Host)
		if err != nil {
			return err
		}
		if e == nil && open == nil {
			return &refusal.Error{Err: fmt.Errorf("there is no record of cluster %s, neither on its masters nor here: its creation has not ended", c.Metadata.Name),
				Kind: refusal.Failed, Advice: "make it, or go on with it: kubexm install ARCHIVE -f " + f.config}
		}
		v, err = viewOf(c.Metadata.Name, e, open)
		return err
	})
	return v, err
}

// viewOf is a cluster by its record; nil where it has none.
func viewOf(name string, e *manifest.Existing, open *cluster.Operation) (clusterView, error) {
	v := clusterView{Name: name}
	if open != nil {
		v.Operation = fmt.Sprintf("%s %s", open.Kind, open.State)
	}
	if e == nil {
		return v, nil
	}
	config, err := e.Config.Public()
	if err != nil {
		return v, err
	}
	return clusterView{
		Name: name, Operation: v.Operation, Release: e.Set, Masters: len(e.Config.HostsWith(manifest.RoleMaster)), Hosts: len(e.Hosts), Serial: e.Serial, Lead: e.Lead, Away: e.Away, Revision: e.Revision,
		Bundle: e.Root, Lock: e.Lock, Config: digest.FromBytes(config).String(), Highest: e.Highest, Components: e.Components,
	}, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/report"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/cluster"
)

func (a *app) kubeconfigCommand() *cobra.Command {
	f := &siteFlags{}
	var out, merge string
	cmd := &cobra.Command{
		Use:   "kubeconfig -f CONFIG",
		Short: "Print a cluster's kubeconfig, or merge it into a file",
		Long: `Read the administrator's kubeconfig from a master, and print it for use on this machine. The server is
an address that this machine reaches. Cluster, user and context have the name of the cluster.

--out writes it to a file that only you can read. --merge adds it to an existing kubeconfig: entries
with the cluster's name are replaced, all others stay, and the cluster becomes the current context.

The file grants full control of the cluster. Before it is written it is verified: a kubeconfig with
fields that kubeadm does not write, or with another CA, is refused.`,
		Example: `  kubexm kubeconfig -f config.yaml > kubeconfig
  kubexm kubeconfig -f config.yaml --out kubeconfig
  kubexm kubeconfig -f config.yaml --merge ~/.kube/config`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.loadCluster(f.config, "")
			if err != nil {
				return err
			}
			var text []byte
			if err := a.onMaster(cmd.Context(), f.workdir, c, func(ctx context.Context, h *steps.Host) error {
				text, err = cluster.Kubeconfig(ctx, c, h)
				return err
			}); err != nil {
				return err
			}
			return a.writeKubeconfig(c, text, out, merge)
		},
	}
	cmd.Flags().StringVarP(&f.config, "filename", "f", "", useConfig)
	cmd.Flags().StringVar(&f.workdir, "workdir", ".", useWorkdir)
	cmd.Flags().StringVarP(&out, "out", "O", "", useOut)
	cmd.Flags().StringVar(&merge, "merge", "", "merge it into this kubeconfig, as the current context")
	_ = cmd.MarkFlagRequired("filename")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	cmd.MarkFlagsMutuallyExclusive("out", "merge")
	return cmd
}

// writeKubeconfig prints a kubeconfig, or writes it to out, or merges it into merge.
func (a *app) writeKubeconfig(c *manifest.Cluster, text []byte, out, merge string) error {
	if out == "" && merge == "" {
		_, err := a.out.Write(text)
		return err
	}
	path := out
	if merge != "" {
		path = merge
		if to, err := filepath.EvalSymlinks(merge); err == nil { // a symbolic link is preserved
			path = to
		}
		before, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &refusal.Error{Err: err, Kind: refusal.Usage}
		}
		if text, err = cluster.MergeKubeconfig(before, text); err != nil {
			return &refusal.Error{Err: fmt.Errorf("%s: %w", merge, err), Kind: refusal.Usage, Advice: "specify a kubeconfig, or write a separate one with --out"}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	}
	if err := durable.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	next := ""
	if merge == "" || !a.kubectlReads(merge) {
		next = "KUBECONFIG=" + report.CommandLine(path) + " "
	}
	_, err := fmt.Fprintf(a.err, "%s: context %s\n  next  %skubectl get nodes\n", path, c.Metadata.Name, next)
	return err
}

// kubectlReads reports whether kubectl reads this kubeconfig by default.
func (a *app) kubectlReads(file string) bool {
	if v, ok := a.env("KUBECONFIG"); ok && v != "" {
		return false
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	at, err := filepath.Abs(file)
	return err == nil && at == filepath.Join(home, ".kube", "config")
}

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/components"
)

func upstreamCommand() *cobra.Command {
	var config, out string
	var f choice
	cmd := &cobra.Command{
		Use:   "upstream -f CONFIG [-- COMMAND [ARG...]]",
		Short: "Serve the lab's real components at the real addresses' layout, on the loopback address",
		Long: `Serve what a config asks for, of the components that the lab builds, while a command runs or
until interrupted. OUT/sources.yaml and OUT/versions.yaml let kubexm use it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			cache, err := components.DefaultCache()
			if err != nil {
				return err
			}
			root, err := components.Checkout()
			if err != nil {
				return err
			}
			u, err := lab.NewUpstream(ctx, lab.Source{Config: config, Kubernetes: f.kubernetes, Components: f.with, Root: root, Cache: cache, Log: os.Stdout})
			if err != nil {
				return err
			}
			var lc net.ListenConfig
			l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			paths, err := u.WriteFiles(out, "http://"+l.Addr().String())
			if err != nil {
				return errors.Join(err, l.Close())
			}
			fmt.Fprintf(cmd.OutOrStdout(), "serving at http://%s; use it with --sources %s --versions %s\n", l.Addr(), paths.Sources, paths.Versions)
			if len(args) == 0 {
				return u.Run(ctx, l)
			}
			return serveWhile(cmd, u, l, args)
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&config, "filename", "f", "testdata/configs/lab.yaml", "the cluster config")
	fs.StringVar(&out, "out", "build/lab", "the folder that sources.yaml and versions.yaml are written to")
	f.add(cmd)
	return cmd
}

// serveWhile serves until a command has ended.
func serveWhile(cmd *cobra.Command, u *lab.Upstream, l net.Listener, args []string) error {
	served := make(chan error, 1)
	go func() { served <- u.Run(cmd.Context(), l) }()
	c := exec.CommandContext(cmd.Context(), args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	_ = l.Close()
	if serr := <-served; err == nil && !errors.Is(serr, net.ErrClosed) {
		err = serr
	}
	return err
}

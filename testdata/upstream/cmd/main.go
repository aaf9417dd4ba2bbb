// Command upstream serves stand-ins for all artifacts of a cluster config on the loopback
// address, and writes the two files that kubexm needs to use it: sources.yaml for --sources
// and versions.yaml for --versions.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := root().ExecuteContext(ctx)
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended) && ended.Exited():
		return ended.ExitCode() // the command that ran has said why
	}
	fmt.Fprintf(os.Stderr, "error: %v\n", err)
	return 1
}

func root() *cobra.Command {
	root := &cobra.Command{
		Use:   "upstream",
		Short: "Serve stand-ins for what a cluster config asks for, on the loopback address",
		Long: `Serve stand-ins for what a cluster config asks for, on the loopback address, at the
addresses' real layout. A stand-in has the right shape, and is not the program that
it is named after: it is for tests, and for a first look at kubexm.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(serveCommand(), withCommand())
	return root
}

func serveCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve until interrupted",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			u, err := open(cmd.Context(), &f)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "serving stand-ins for %d files and %d images at %s until interrupted (Ctrl-C)\n",
				len(u.lock.Artifacts), len(u.lock.Images), u.url)
			fmt.Fprintf(cmd.OutOrStdout(), "  use it  build/kubexm bundle build -f %s --sources %s --versions %s --lock %s --cache-dir %s\n",
				f.config, u.paths.Sources, u.paths.Versions, filepath.Join(f.out, "upstream.lock"), filepath.Join(f.out, "cache"))
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return u.run(ctx)
		},
	}
	f.add(cmd)
	return cmd
}

func withCommand() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "with [flags] -- COMMAND [ARG...]",
		Short: "Serve while a command runs, and end as it ends",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := open(cmd.Context(), &f)
			if err != nil {
				return err
			}
			ctx, stop := context.WithCancel(cmd.Context())
			served := make(chan error, 1)
			go func() { served <- u.run(ctx) }()
			err = child(cmd.Context(), args)
			stop()
			return errors.Join(err, <-served)
		},
	}
	f.add(cmd)
	return cmd
}

// child runs a command in the foreground. An interrupt from the terminal reaches
// it without us, and it may have something to finish: we end when it does. A
// SIGTERM that was sent to this process alone is passed on.
func child(ctx context.Context, args []string) error {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // caught, not ignored: what is ignored the child would ignore too
	defer signal.Stop(interrupts)
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	return c.Run()
}

// Command lab builds what the lab runs, brings labs up and down, and looks into them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := root().ExecuteContext(ctx)
	var ended exited
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ended):
		return int(ended) // the command that ran has said why
	}
	fmt.Fprintf(os.Stderr, "error: %v\n", err)
	return 1
}

// exited is the exit status of a command that was run for its own sake.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func root() *cobra.Command {
	root := &cobra.Command{
		Use:           "lab",
		Short:         "Build the lab's components, bring labs up and down, and look into them",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(upCommand(), rootCommand(), mirrorCommand(), downCommand(), listCommand(), onCommand(), egressCommand(), componentsCommand(), pinCommand(), upstreamCommand(),
		possibleCommand(), configCommand(), smokeCommand(),
		checkpointCommand(), checkpointsCommand(), restoreCommand(), forgetCommand())
	return root
}

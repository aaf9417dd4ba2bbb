// Command lab builds what the lab runs, brings labs up and down, and looks into them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
		Use:           "lab",
		Short:         "Build the lab's components, bring labs up and down, and look into them",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(upCommand(), downCommand(), listCommand(), onCommand(), egressCommand(), componentsCommand(), pinCommand(), upstreamCommand(),
		possibleCommand(), configCommand(), smokeCommand())
	return root
}

// Command kubexm takes Kubernetes into places without internet and keeps it
// alive there. See the README for the two commands that matter most, and
// ARCHITECTURE.md for the way one of them takes through the packages.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(realMain()) }

// realMain is main with its exit code as a value: the script tests run it in
// processes of their own.
func realMain() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal is not caught: the default action ends the process at once.
	context.AfterFunc(ctx, stop)
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}
	return a.run(ctx, os.Args[1:])
}

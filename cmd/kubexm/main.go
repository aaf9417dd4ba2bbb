package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
)

func main() { os.Exit(realMain()) }

// realMain is main, but returns the exit code: the script tests run it in separate
// processes.
func realMain() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, stop: make(chan struct{}), screen: console.NewScreen(os.Stderr)}
	if err := noCores(); err != nil {
		fmt.Fprintf(a.err, "warning: core dumps cannot be disabled; a core file may contain passwords and keys: %v\n", err)
	}
	a.listen(cancel)
	return a.run(ctx, os.Args[1:])
}

// listen handles SIGINT and SIGTERM. A command that supports a graceful stop stops
// gracefully at the first signal and is cancelled at the second; any other command is
// cancelled at the first. The next signal has its default action and ends the process.
func (a *app) listen(cancel context.CancelFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go a.interrupted(signals, cancel)
}

// interrupted handles the signals in turn.
func (a *app) interrupted(signals chan os.Signal, cancel context.CancelFunc) {
	<-signals
	if a.orderly.Load() {
		a.pressed.Add(1)
		close(a.stop)
		fmt.Fprintln(a.screen, "stopping: running steps are completed, no new step starts; press Ctrl-C again to cancel running steps")
		<-signals
		a.pressed.Add(1)
		fmt.Fprintln(a.screen, "cancelling: interrupted steps are undone where possible; press Ctrl-C again to exit immediately, with hosts left as they are")
	}
	signal.Stop(signals)
	cancel()
}

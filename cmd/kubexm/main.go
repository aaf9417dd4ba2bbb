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

// realMain is main with its exit code as a value: the script tests run it in
// processes of their own.
func realMain() int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, stop: make(chan struct{}), screen: console.NewScreen(os.Stderr)}
	if err := noCores(); err != nil {
		fmt.Fprintf(a.err, "warning: what kubexm holds in memory may get into a core file: %v\n", err)
	}
	a.listen(cancel)
	return a.run(ctx, os.Args[1:])
}

// listen turns signals into an end: a command that can stop in good order does
// so at the first and breaks off at the second, every other breaks off at the
// first. One more is not caught: the default action ends the process at once.
func (a *app) listen(cancel context.CancelFunc) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go a.interrupted(signals, cancel)
}

// interrupted answers the signals as they come.
func (a *app) interrupted(signals chan os.Signal, cancel context.CancelFunc) {
	<-signals
	if a.orderly.Load() {
		a.pressed.Add(1)
		close(a.stop)
		fmt.Fprintln(a.screen, "stopping: running steps are brought to their end, nothing new begins; Ctrl-C once more breaks off")
		<-signals
		a.pressed.Add(1)
		fmt.Fprintln(a.screen, "breaking off: what ran is undone where that can be; once more ends kubexm at once, with hosts as they are")
	}
	signal.Stop(signals)
	cancel()
}

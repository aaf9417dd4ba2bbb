// Package main runs what CI runs, stage by stage, and tells how long each stage
// took beside its budget.
//
//	stage run [LEVELS]         run the stages of stages.yaml, or those of levels such as BCD, see Runner
//	stage test -- -race ./...  run go test, see Tests
//	stage once -- ./...        the same for tests that try their parts again by themselves
//	stage times                set the modification times of sources, see Times
//
// It owns the order of the stages, their budgets, the deadline, the retry of a
// failed test and the list of tests that must not be skipped. It knows nothing of
// kubexm: a stage is a target of the Makefile.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() { cancel(interrupted{<-signals}) }()
	os.Exit(start(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// interrupted is the cause of a context that a signal has cancelled.
type interrupted struct{ signal os.Signal }

func (i interrupted) Error() string { return i.signal.String() }

// signalOf returns the signal that cancelled a context, SIGTERM for other causes.
func signalOf(ctx context.Context) syscall.Signal {
	var i interrupted
	if errors.As(context.Cause(ctx), &i) && i.signal == os.Interrupt {
		return syscall.SIGINT
	}
	return syscall.SIGTERM
}

const usage = `usage: stage run [LEVELS]
       stage test -- [flags of go test, a value after =] packages [flags of the tests]
       stage once -- …, as test, with no second try for a test that fails
       stage times
`

// start runs one command and returns the exit code.
func start(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var code int
	var err error
	switch {
	case len(args) == 1 && args[0] == "run", len(args) == 2 && args[0] == "run":
		code, err = run(ctx, strings.Join(args[1:], ""), stdout, stderr)
	case len(args) > 2 && (args[0] == "test" || args[0] == "once") && args[1] == "--":
		tests := Tests{Args: args[2:], Once: args[0] == "once", MustRun: mustRun(os.Getenv(mustRunEnv)), Notes: NotesOf(os.Getenv), Out: stdout, Err: stderr}
		code, err = tests.Run(ctx)
	case len(args) == 1 && args[0] == "times":
		err = Times(ctx, ".")
	default:
		fmt.Fprint(stderr, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, "stage:", err)
		return max(code, 1)
	}
	return code
}

// run runs the stages of this repository from its root: all, or those of some levels. Only a
// run of all levels has to run every test that must run.
func run(ctx context.Context, levels string, stdout, stderr io.Writer) (int, error) {
	table, err := ReadTable("testdata/stage/stages.yaml")
	if err != nil {
		return 1, err
	}
	must := mustRun(os.Getenv(mustRunEnv))
	if levels != "" {
		must = nil
		if table, err = table.Only(levels); err != nil {
			return 1, err
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return 1, err
	}
	dir, release, err := checkout(filepath.Join(cache, "kubexm-stage"), ".")
	if err != nil {
		return 1, err
	}
	r := Runner{Table: table, Dir: dir, MustRun: must, Out: stdout, Err: stderr}
	code, err := r.Run(ctx)
	return code, errors.Join(err, release())
}

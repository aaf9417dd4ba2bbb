package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The results of a stage in stages.json.
const (
	Passed      = "passed"
	Failed      = "failed"
	Interrupted = "interrupted"
	NotRun      = "not run"
)

// grace is how long a stage's processes may take to end after a signal.
const grace = 30 * time.Second

// Runner runs the stages of a table one after another, until one fails.
type Runner struct {
	Table   Table
	Dir     string   // the folder of the Makefile, absolute; output is written to its folder build
	MustRun []string // tests that must run in some stage of a complete run
	Out     io.Writer
	Err     io.Writer
}

// Run runs the stages, prints the summary and writes build/stages.json. The exit code is that
// of the first stage that failed, or 128 plus the number of the signal that ended the run.
//
// A stage of level F also starts after the deadline: only its target knows which scenarios are
// due, and reports those that it does not start.
func (r Runner) Run(ctx context.Context) (int, error) {
	began := time.Now()
	build := filepath.Join(r.Dir, "build")
	if err := os.MkdirAll(build, 0o755); err != nil {
		return 1, err
	}
	notes := Notes{Flakes: filepath.Join(build, "flakes.txt"), Ran: filepath.Join(build, "ran.txt")}
	for _, f := range []string{notes.Flakes, notes.Ran} {
		if err := os.RemoveAll(f); err != nil {
			return 1, err
		}
	}
	deadline := began.Add(r.Table.Deadline.Duration())
	// Shells and go use the folder's name in PWD if it refers to the same folder.
	env := append(os.Environ(), "PWD="+r.Dir, deadlineEnv+"="+strconv.FormatInt(deadline.Unix(), 10), flakesEnv+"="+notes.Flakes, ranEnv+"="+notes.Ran)

	report := Report{Began: began.UTC().Truncate(time.Second)}
	code := 0
	for _, s := range r.Table.Stages {
		o := Outcome{Name: s.Name, Level: s.Level, Warm: s.Warm, Cold: s.Cold, Result: NotRun}
		if code == 0 {
			fmt.Fprintf(r.Out, "== %s (budget %d s)\n", s.Name, s.Warm)
			start := time.Now()
			o.Result, code = r.stage(ctx, s, env)
			o.Seconds = time.Since(start).Seconds()
			fmt.Fprintf(r.Out, "== %s: %s after %.0f s\n", s.Name, o.Result, o.Seconds)
		}
		report.Stages = append(report.Stages, o)
	}
	var err error
	if report.Flakes, err = read(notes.Flakes); err == nil && code == 0 {
		code, err = r.everyoneRan(notes.Ran)
	}
	report.Seconds = time.Since(began).Seconds()
	report.Print(r.Out)
	return code, errors.Join(err, report.Write(filepath.Join(build, "stages.json")))
}

// stage runs one stage in a process group of its own.
func (r Runner) stage(ctx context.Context, s Stage, env []string) (result string, code int) {
	if ctx.Err() != nil {
		return NotRun, 128 + int(signalOf(ctx))
	}
	c := exec.CommandContext(ctx, "make", append([]string{"--no-print-directory"}, strings.Fields(s.Make)...)...)
	c.Dir, c.Env, c.Stdout, c.Stderr = r.Dir, env, r.Out, r.Err
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, signalOf(ctx)) }
	c.WaitDelay = grace
	err := c.Run()
	if c.Process != nil {
		end(-c.Process.Pid)
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Interrupted, 128 + int(signalOf(ctx))
	case err == nil:
		return Passed, 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return Failed, exit.ExitCode()
	}
	fmt.Fprintln(r.Err, "stage:", err)
	return Failed, 1
}

// end kills what make has left of a process group: nothing of a stage may run beside the next
// one.
func end(group int) {
	_ = syscall.Kill(group, syscall.SIGTERM) // no process left is fine too
	for waited := time.Duration(0); waited < grace/3 && syscall.Kill(group, 0) == nil; waited += 20 * time.Millisecond {
		time.Sleep(20 * time.Millisecond)
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
}

// everyoneRan reports tests that must run and that no stage ran: a pattern of names that no
// longer matches is otherwise not noticed.
func (r Runner) everyoneRan(file string) (int, error) {
	ran, err := read(file)
	if err != nil {
		return 1, err
	}
	lacking := slices.DeleteFunc(slices.Clone(r.MustRun), func(name string) bool { return slices.Contains(ran, name) })
	if len(lacking) == 0 {
		return 0, nil
	}
	return 1, fmt.Errorf("no stage ran %s, which %s lists", strings.Join(lacking, ", "), mustRunEnv)
}

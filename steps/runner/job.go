package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Job is a long-running command that the host runs as a transient systemd unit. It
// continues if the connection breaks or kubexm ends. A later run finds it by its name.
type Job struct {
	// Name determines the unit: kubexm-NAME.service. The same work must have the same
	// name in every run.
	Name string
	// Argv is the program, run as root. All users of the host can read it. Its elements
	// must not contain line breaks: systemd stores a transient unit as lines of a file,
	// and would lose the job on a daemon-reload, which package installations trigger.
	Argv []string
	// Script is a shell script to run with the arguments Argv, instead of a program.
	Script string
	// Output receives standard output and standard error of the job, redacted.
	Output io.Writer
	// Poll is the polling interval; 0 means one second.
	Poll time.Duration
	// Secrets are masked in errors and Output, in addition to those of the Redactor.
	Secrets []string
}

// jobDir is the folder of the jobs' logs. Like the jobs, it does not survive a boot.
const jobDir = "/run/kubexm/jobs"

var jobName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)

// Unit returns the name of the job's unit.
func (j Job) Unit() string { return "kubexm-" + j.Name + ".service" }

func (j Job) log() string    { return jobDir + "/" + j.Name + ".log" }
func (j Job) script() string { return jobDir + "/" + j.Name + ".sh" }

func (j Job) check() error {
	if !jobName.MatchString(j.Name) {
		return fmt.Errorf("%q is not a valid job name", j.Name)
	}
	for _, a := range j.Argv {
		if strings.ContainsAny(a, "\n\r") {
			return fmt.Errorf("job %s has an argument with a line break", j.Name)
		}
	}
	return nil
}

// JobState is the state of a job.
type JobState struct {
	Exists  bool // systemd has the unit
	Running bool
	Exit    int // exit status after the end; 128 plus the signal's number if a signal ended it
	Log     []byte
}

// StartJob starts a job and does not wait for it. If a job of that name is running, or has
// ended and was not cleared, the error is ErrExists.
func (r *Runner) StartJob(ctx context.Context, j Job) error {
	if err := j.check(); err != nil {
		return err
	}
	args := []string{j.Unit(), j.log()}
	var script io.Reader
	argv := j.Argv
	if j.Script != "" {
		script, argv = strings.NewReader(j.Script), append([]string{"/bin/sh", j.script()}, argv...)
	}
	for _, a := range argv {
		args = append(args, strings.ReplaceAll(a, "$", "$$")) // systemd expands variables
	}
	_, err := r.do(ctx, connector.Cmd{
		Verb: connector.VerbJobStart, Argv: shell(scriptJobStart, args...), Stdin: script, Sudo: true, Secrets: j.Secrets,
	})
	if exited(err, exitExists) {
		return fmt.Errorf("job %s: %w", j.Name, ErrExists)
	}
	return err
}

// Job returns the state of a job, and its log from byte offset from on (at most 256 KiB).
func (r *Runner) Job(ctx context.Context, j Job, from int64) (JobState, error) {
	if err := j.check(); err != nil {
		return JobState{}, err
	}
	res, err := r.script(ctx, connector.VerbJobPoll, scriptJobPoll, nil, j.Unit(), j.log(), strconv.FormatInt(from, 10))
	if err != nil {
		return JobState{}, err
	}
	return parseJob(res.Stdout)
}

func parseJob(b []byte) (JobState, error) {
	head, log, ok := bytes.Cut(b, []byte("\n\n"))
	p := properties(head)
	if !ok || p["LoadState"] == "" {
		return JobState{}, fmt.Errorf("systemctl printed %q", head)
	}
	s := JobState{Exists: p["LoadState"] == "loaded", Log: log}
	if !s.Exists {
		return s, nil
	}
	switch p["ActiveState"] {
	case "activating", "deactivating", "reloading":
		s.Running = true
	case "active":
		s.Running = p["SubState"] != "exited"
	}
	s.Exit, _ = strconv.Atoi(p["ExecMainStatus"])
	if p["ExecMainCode"] == "2" || p["ExecMainCode"] == "3" { // CLD_KILLED, CLD_DUMPED
		s.Exit += 128
	}
	if !s.Running && s.Exit == 0 && p["ActiveState"] == "failed" {
		s.Exit = 1 // systemd failed to start it, for example because the program is missing
	}
	return s, nil
}

// ClearJob stops a job and deletes its unit and its log.
func (r *Runner) ClearJob(ctx context.Context, j Job) error {
	if err := j.check(); err != nil {
		return err
	}
	_, err := r.script(ctx, connector.VerbJobClear, scriptJobClear, nil, j.Unit(), j.log())
	return err
}

// WaitJob waits for the end of an existing job, clears it, and returns the end of its log.
// An exit status other than 0 is a *CmdError. WaitJob reconnects if the connection breaks;
// the job is not affected.
func (r *Runner) WaitJob(ctx context.Context, j Job) (log []byte, err error) {
	every := j.Poll
	if every <= 0 {
		every = time.Second
	}
	out := io.WriteCloser(discard{})
	red := r.opt.Redactor.With(j.Secrets...)
	if j.Output != nil {
		out = red.Writer(j.Output)
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	tail := connector.Tail{Limit: connector.DefaultLimit}
	var at int64
	lost := 0
	for {
		s, err := r.Job(ctx, j, at)
		switch {
		case OutOfReach(err) && lost < reconnects && ctx.Err() == nil:
			if lost++; lost == 1 {
				continue // the next command reconnects
			}
		case err != nil:
			return tail.Bytes(), err
		case !s.Exists:
			return tail.Bytes(), absent("wait for job", j.Name)
		default:
			lost = 0
			at += int64(len(s.Log))
			_, _ = tail.Write(s.Log) // never fails
			if _, err := out.Write(s.Log); err != nil {
				return tail.Bytes(), err
			}
			if !s.Running && len(s.Log) == 0 {
				return tail.Bytes(), r.jobEnded(ctx, j, s, red.String(string(tail.Bytes())))
			}
			if !s.Running || len(s.Log) >= jobChunk {
				continue // there is more of the log
			}
		}
		if err := sleep(ctx, every); err != nil {
			return tail.Bytes(), err
		}
	}
}

// jobChunk is the maximum part of the log that scriptJobPoll prints.
const jobChunk = 256 << 10

// reconnects is how many times in a row WaitJob tries to reconnect.
const reconnects = 10

// RunJob runs a job to its end. It waits for a running job of that name; otherwise it
// clears an ended one and starts the job.
func (r *Runner) RunJob(ctx context.Context, j Job) (log []byte, err error) {
	s, err := r.Job(ctx, j, 0)
	if err != nil {
		return nil, err
	}
	if s.Exists && !s.Running {
		if err := r.ClearJob(ctx, j); err != nil {
			return nil, err
		}
	}
	if !s.Running {
		if err := r.StartJob(ctx, j); err != nil && !errors.Is(err, ErrExists) {
			return nil, err
		}
	}
	return r.WaitJob(ctx, j)
}

// OutOfReach reports whether err is a broken or failed connection, so that a retry may
// succeed.
func OutOfReach(err error) bool {
	var broken *connector.BrokenError
	var dial *connector.DialError
	return errors.As(err, &broken) || errors.As(err, &dial)
}

// jobEnded clears an ended job and returns its error. A failure to reach the host is
// ignored: the next RunJob clears the job.
func (r *Runner) jobEnded(ctx context.Context, j Job, s JobState, log string) error {
	err := r.ClearJob(ctx, j)
	if OutOfReach(err) {
		err = r.ClearJob(ctx, j)
	}
	if err != nil && !OutOfReach(err) {
		return err
	}
	if s.Exit == 0 {
		return nil
	}
	red := r.opt.Redactor.With(j.Secrets...)
	return &CmdError{Verb: connector.VerbExec, Argv: red.Argv(j.Argv), Exit: s.Exit, Stderr: log}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }

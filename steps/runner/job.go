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

// Job is a long command that runs on the host as a transient systemd unit. It
// goes on when the connection breaks or kubexm ends; whoever comes next finds it
// by its name.
type Job struct {
	// Name makes the unit's: kubexm-NAME.service. The same work has the same name
	// in every run.
	Name string
	// Argv is the program, run as root. Everybody on the host can read it. No
	// element has a line break: systemd keeps it in a file of lines, and would lose
	// the job when it reads that again, as the installation of a package makes it do.
	Argv []string
	// Script is a shell script that gets Argv as its arguments, in place of a program.
	Script string
	// Output gets what the job prints, standard output and error, redacted.
	Output io.Writer
	// Poll is the time between two looks; 0 means one second.
	Poll time.Duration
	// Secrets are masked in errors and Output, beside those that the Runner knows.
	Secrets []string
}

// jobDir holds the logs of jobs; like the jobs it is gone after a boot.
const jobDir = "/run/kubexm/jobs"

var jobName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)

// Unit gives the name of the job's unit.
func (j Job) Unit() string { return "kubexm-" + j.Name + ".service" }

func (j Job) log() string    { return jobDir + "/" + j.Name + ".log" }
func (j Job) script() string { return jobDir + "/" + j.Name + ".sh" }

func (j Job) check() error {
	if !jobName.MatchString(j.Name) {
		return fmt.Errorf("%q is no name of a job", j.Name)
	}
	for _, a := range j.Argv {
		if strings.ContainsAny(a, "\n\r") {
			return fmt.Errorf("job %s has an argument with a line break", j.Name)
		}
	}
	return nil
}

// JobState is how far a job is.
type JobState struct {
	Exists  bool // systemd knows it
	Running bool
	Exit    int // of one that ended; 128 plus the number of the signal that ended it
	Log     []byte
}

// StartJob starts a job and does not wait for it. One of its name that runs, or
// that ended and was not cleared, is ErrExists.
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
		args = append(args, strings.ReplaceAll(a, "$", "$$")) // systemd would put variables in
	}
	_, err := r.do(ctx, connector.Cmd{
		Verb: connector.VerbJobStart, Argv: shell(scriptJobStart, args...), Stdin: script, Sudo: true, Secrets: j.Secrets,
	})
	if exited(err, exitExists) {
		return fmt.Errorf("job %s: %w", j.Name, ErrExists)
	}
	return err
}

// Job tells the state of a job, with its log from the given byte on (256 KiB at most).
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
		return JobState{}, fmt.Errorf("systemctl said %q", head)
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
		s.Exit = 1 // failed for a reason of systemd's own, as when the program is missing
	}
	return s, nil
}

// ClearJob stops a job that runs and makes the host forget it.
func (r *Runner) ClearJob(ctx context.Context, j Job) error {
	if err := j.check(); err != nil {
		return err
	}
	_, err := r.script(ctx, connector.VerbJobClear, scriptJobClear, nil, j.Unit(), j.log())
	return err
}

// WaitJob waits for the end of a job that exists, clears it, and gives the end
// of its log. Another exit status than 0 is a *CmdError. A connection that breaks
// meanwhile is made again: the job does not notice.
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
	kept := connector.Tail{Limit: connector.DefaultLimit}
	var at int64
	lost := 0
	for {
		s, err := r.Job(ctx, j, at)
		switch {
		case outOfReach(err) && lost < reconnects && ctx.Err() == nil:
			if lost++; lost == 1 {
				continue // the next command makes a new connection
			}
		case err != nil:
			return kept.Bytes(), err
		case !s.Exists:
			return kept.Bytes(), absent("wait for job", j.Name)
		default:
			lost = 0
			at += int64(len(s.Log))
			_, _ = kept.Write(s.Log) // never fails
			if _, err := out.Write(s.Log); err != nil {
				return kept.Bytes(), err
			}
			if !s.Running && len(s.Log) == 0 {
				return kept.Bytes(), r.jobEnded(ctx, j, s, red.String(string(kept.Bytes())))
			}
			if !s.Running || len(s.Log) >= jobChunk {
				continue // there is more of the log
			}
		}
		if err := sleep(ctx, every); err != nil {
			return kept.Bytes(), err
		}
	}
}

// jobChunk is how much of the log scriptJobPoll gives at a time.
const jobChunk = 256 << 10

// reconnects is how often in a row WaitJob tries to reach the host again.
const reconnects = 10

// RunJob sees a job to its end: one of its name that runs is waited for, one
// that ended earlier is cleared, and then it is started.
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

// outOfReach tells whether the next try may reach the host again.
func outOfReach(err error) bool {
	var broken *connector.BrokenError
	var dial *connector.DialError
	return errors.As(err, &broken) || errors.As(err, &dial)
}

// jobEnded clears a job and tells how it ended. That is known already, so a host
// that cannot be reached to clear it is no error: the next RunJob clears it.
func (r *Runner) jobEnded(ctx context.Context, j Job, s JobState, log string) error {
	err := r.ClearJob(ctx, j)
	if outOfReach(err) {
		err = r.ClearJob(ctx, j)
	}
	if err != nil && !outOfReach(err) {
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

package conntest

import (
	"bytes"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/steps/connector"
)

// job is a transient unit.
type job struct {
	polls int // left until it ends
	exit  int
	log   string
}

// jobPolls is how often a job is looked at before it has ended.
const jobPolls = 2

// EndJobsAtOnce makes jobs end before the first poll.
func (s *Sim) EndJobsAtOnce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polls = 0
}

// doJob knows the verbs about jobs. What a job does is what its program does:
// scripted, and done at once when it starts; it ends at the third look.
func (s *Sim) doJob(c connector.Cmd, stdin []byte) (connector.Result, bool) {
	if !strings.HasPrefix(c.Verb, "job.") {
		return connector.Result{}, false
	}
	args := c.Args()
	unit, log := args[0], args[1]
	j := s.jobs[unit]
	switch c.Verb {
	case connector.VerbJobStart:
		if j != nil {
			return exits(48, "")
		}
		var argv []string
		for _, a := range args[2:] {
			argv = append(argv, strings.ReplaceAll(a, "$$", "$"))
		}
		run := connector.Cmd{Verb: connector.VerbExec, Argv: argv, Sudo: true}
		if len(stdin) > 0 { // a script of the runner's: its first argument is the verb
			run.Verb, run.Argv = argv[2], append([]string{"/bin/sh", "-c", "", "sh"}, argv[3:]...)
		}
		s.mu.Unlock() // the program's handler may use the Sim
		res, err := s.answer(run, nil)
		s.mu.Lock()
		if err != nil {
			return exits(1, "%v", err)
		}
		s.jobs[unit] = &job{polls: s.polls, exit: res.Exit, log: string(res.Stdout) + string(res.Stderr)}
		s.addDir(path.Dir(log), 0o700)
		s.files.put(log, &File{Mode: 0o600, Data: []byte(s.jobs[unit].log)})
		return connector.Result{}, true
	case connector.VerbJobPoll:
		from, _ := strconv.Atoi(args[2])
		return s.poll(j, log, from)
	case connector.VerbJobClear:
		delete(s.jobs, unit)
		s.files.drop(log)
		return connector.Result{}, true
	}
	return connector.Result{}, false
}

func (s *Sim) poll(j *job, log string, from int) (connector.Result, bool) {
	if j == nil {
		return says("LoadState=not-found\nActiveState=inactive\nSubState=dead\nResult=success\nExecMainCode=0\nExecMainStatus=0\n\n")
	}
	var out bytes.Buffer
	switch {
	case j.polls > 0:
		j.polls--
		out.WriteString("LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nExecMainCode=0\nExecMainStatus=0\n\n")
	case j.exit == 0:
		out.WriteString("LoadState=loaded\nActiveState=active\nSubState=exited\nResult=success\nExecMainCode=1\nExecMainStatus=0\n\n")
	default:
		fmt.Fprintf(&out, "LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainCode=1\nExecMainStatus=%d\n\n", j.exit)
	}
	if f, ok := s.files.at[log]; ok && from < len(f.Data) {
		out.Write(f.Data[from:])
	}
	return connector.Result{Stdout: out.Bytes()}, true
}

// Jobs returns the units of the host's jobs.
func (s *Sim) Jobs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for n := range s.jobs {
		names = append(names, n)
	}
	return names
}

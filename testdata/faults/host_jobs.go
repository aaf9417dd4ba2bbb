package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// hostJob is a transient unit: a program that runs beside the connection that
// started it.
type hostJob struct {
	end  context.CancelFunc
	over chan struct{}
	exit int // once over is closed
}

// hostLease is a claim that a command holds.
type hostLease struct {
	mu     sync.Mutex
	holder string
	beat   time.Time
	gone   context.CancelFunc // ends the command
	over   chan struct{}
}

// job answers the verbs of jobs.
func (h *host) job(c connector.Cmd, _ []byte) (connector.Result, bool) {
	args := c.Args()
	unit, log := args[0], args[1]
	h.mu.Lock()
	j := h.jobs[unit]
	h.mu.Unlock()
	switch c.Verb {
	case connector.VerbJobStart:
		return h.start(j, unit, log, args[2:]), true
	case connector.VerbJobPoll:
		from, _ := strconv.Atoi(args[2])
		return h.poll(j, log, from), true
	case connector.VerbJobClear:
		if j != nil {
			j.end()
			<-j.over
		}
		h.mu.Lock()
		delete(h.jobs, unit)
		h.mu.Unlock()
		h.sim.RemoveAll(log)
		if len(h.sim.Below(path.Dir(log))) == 0 {
			h.sim.RemoveAll(path.Dir(log))
		}
	}
	return connector.Result{}, true
}

func (h *host) start(j *hostJob, unit, log string, argv []string) connector.Result {
	if j != nil {
		return connector.Result{Exit: 48}
	}
	for i, a := range argv {
		argv[i] = strings.ReplaceAll(a, "$$", "$")
	}
	h.mu.Lock()
	alive, end := context.WithCancel(h.on)
	j = &hostJob{end: end, over: make(chan struct{})}
	h.jobs[unit] = j
	h.mu.Unlock()
	h.sim.AddFile(log, "", 0o600)
	h.running(alive, argv[0])
	go func() {
		defer close(j.over)
		res, err := h.sim.Exec(context.WithoutCancel(alive), connector.Cmd{Verb: connector.VerbExec, Argv: argv, Sudo: true})
		if err != nil {
			res = connector.Result{Exit: 127, Stderr: []byte(err.Error())}
		}
		if alive.Err() != nil { // with the power, or stopped
			j.exit = 137
			return
		}
		h.sim.AddFile(log, string(res.Stdout)+string(res.Stderr), 0o600)
		j.exit = res.Exit
	}()
	return connector.Result{}
}

// poll tells how far a job is. A host that is slow to answer spares who asks the
// second until the next look.
func (h *host) poll(j *hostJob, log string, from int) connector.Result {
	says := func(text string, more ...any) connector.Result {
		var out bytes.Buffer
		fmt.Fprintf(&out, text+"\n\n", more...)
		if text := h.sim.Read(log); from < len(text) {
			out.WriteString(text[from:])
		}
		return connector.Result{Stdout: out.Bytes()}
	}
	if j == nil {
		return says("LoadState=not-found\nActiveState=inactive\nSubState=dead\nResult=success\nExecMainCode=0\nExecMainStatus=0")
	}
	select {
	case <-j.over:
	case <-time.After(400 * time.Millisecond):
		return says("LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nExecMainCode=0\nExecMainStatus=0")
	}
	if j.exit == 0 {
		return says("LoadState=loaded\nActiveState=active\nSubState=exited\nResult=success\nExecMainCode=1\nExecMainStatus=0")
	}
	return says("LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=exit-code\nExecMainCode=1\nExecMainStatus=%d", j.exit)
}

// running notes how long a program lives that is about to begin.
func (h *host) running(alive context.Context, program string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lives[program] = alive
}

// living reports whether a program still runs that was begun last.
func (h *host) living(program string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	alive := h.lives[program]
	return alive == nil || alive.Err() == nil
}

// hold is the command of a lease, as the runner's script is on a real host: whoever
// has it by the same name may have it again, and silence makes it void.
func (h *host) hold(conn, alive context.Context, c connector.Cmd, stdin io.Reader, stdout io.Writer) int {
	args := c.Args()
	stale, _ := strconv.Atoi(args[2])
	l := &hostLease{holder: args[1], beat: time.Now(), over: make(chan struct{})}
	alive, l.gone = context.WithCancel(alive)
	defer l.gone()
	for {
		h.mu.Lock()
		old := h.leases[args[0]]
		if old == nil {
			h.leases[args[0]] = l
			h.mu.Unlock()
			break
		}
		h.mu.Unlock()
		old.mu.Lock()
		age := time.Since(old.beat)
		old.mu.Unlock()
		if old.holder != l.holder && age <= time.Duration(stale)*time.Second {
			fmt.Fprintln(stdout, old.holder)
			return 49
		}
		old.gone()
		<-old.over
	}
	defer func() {
		h.mu.Lock()
		delete(h.leases, args[0])
		h.mu.Unlock()
		close(l.over)
	}()
	fmt.Fprintln(stdout, "held")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b := make([]byte, 1)
		for {
			if n, err := stdin.Read(b); n == 0 || err != nil {
				return
			}
			l.mu.Lock()
			l.beat = time.Now()
			l.mu.Unlock()
		}
	}()
	select {
	case <-ended:
	case <-conn.Done(): // the pipe of its input ends with the channel
	case <-alive.Done():
		return 137
	}
	return 0
}

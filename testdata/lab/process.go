package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a process that outlives the one that started it. Ids are used
// again, so it is known by when it began as well.
type Process struct {
	ID    int    `json:"id"`
	Began string `json:"began"` // in the kernel's ticks since it booted
}

// start starts cmd in a session of its own, with what it says in a file.
func start(cmd *exec.Cmd, log string) (Process, error) {
	out, err := os.Create(log)
	if err != nil {
		return Process{}, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return Process{}, err
	}
	p := Process{ID: cmd.Process.Pid}
	p.Began, err = began(p.ID)
	go cmd.Wait() //nolint:errcheck // whoever ends it looks at its id
	return p, err
}

// alive reports whether p runs and is the one it was.
func (p Process) alive() bool {
	if p.ID == 0 {
		return false
	}
	at, err := began(p.ID)
	return err == nil && at == p.Began
}

// children lists the processes that p started and that still run.
func (p Process) children() []int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.ID, p.ID))
	if err != nil {
		return nil
	}
	var ids []int
	for _, field := range strings.Fields(string(raw)) {
		if id, err := strconv.Atoi(field); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// end sends p a signal and waits until it is gone; after a while it insists.
func (p Process) end(signal syscall.Signal) error {
	for try := 0; p.alive(); try++ {
		switch try {
		case 0:
			_ = syscall.Kill(p.ID, signal)
		case 100:
			_ = syscall.Kill(p.ID, syscall.SIGKILL)
		case 200:
			return fmt.Errorf("process %d does not end", p.ID)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// began reads when a process began; a dead one that nobody asked about yet counts as gone.
func began(id int) (string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return "", err
	}
	// The second field is a name in brackets that may hold anything.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return "", os.ErrProcessDone
	}
	return fields[19], nil
}

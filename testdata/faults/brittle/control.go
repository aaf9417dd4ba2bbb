package main

import (
	"errors"
	"math/rand/v2"
	"syscall"
)

// Control is what can be asked of the program. Who asks waits for each answer before the
// next request.
type Control struct {
	disk   *Disk
	mount  *Mount
	victim chan int // the process that a loss of power kills
}

// None is a request or an answer that says nothing.
type None struct{}

// Fault is a call that has to fail: the At-th of its kind, counted from the request on.
type Fault struct {
	Kind Kind
	At   int
}

// State is what happened since the last Fault and the last CutAt.
type State struct {
	Struck   string       // the path of the file or folder whose call failed; empty where none did
	Harmless bool         // it had nothing to lose: a close after a sync
	Counts   map[Kind]int // calls of each kind
	Steps    int          // calls that changed something, or made it durable
	WasCut   bool         // the power went
}

// Mount mounts the disk over a folder that is there and empty.
func (c *Control) Mount(dir string, _ *None) (err error) {
	c.mount, err = c.disk.Mount(dir)
	return err
}

// FailAt makes a call fail.
func (c *Control) FailAt(f Fault, _ *None) error {
	c.disk.FailAt(f.Kind, f.At)
	return nil
}

// CutAt takes the power away before the n-th call that changes something, counted from
// now: the process that Victim names is killed, and no call succeeds any more. Until it
// is named, the call waits.
func (c *Control) CutAt(n int, _ *None) error {
	victim := make(chan int, 1)
	c.victim = victim
	c.disk.CutAt(n, func() { _ = syscall.Kill(<-victim, syscall.SIGKILL) }) // it waits for an answer from here
	return nil
}

// Victim names the process that CutAt kills.
func (c *Control) Victim(pid int, _ *None) error {
	if c.victim == nil {
		return errors.New("no loss of power was asked for")
	}
	select {
	case c.victim <- pid:
		return nil
	default:
		return errors.New("a loss of power kills one process, and it was named already")
	}
}

// LosePower mounts, in the place of the disk, what the medium has of it. What it was not
// told to keep is there or not by the seed.
func (c *Control) LosePower(seed [2]uint64, _ *None) error {
	if err := c.mount.Unmount(); err != nil {
		return err
	}
	dir := c.mount.dir
	c.mount, c.disk = nil, c.disk.LosePower(rand.New(rand.NewPCG(seed[0], seed[1]))) //nolint:gosec // the same seed loses the same
	return c.Mount(dir, nil)
}

// Forget gives programs what the medium has of the pages that a failed sync threw away.
func (c *Control) Forget(None, *None) error {
	c.disk.Forget()
	return nil
}

// State tells what happened.
func (c *Control) State(_ None, s *State) error {
	*s = State{Struck: c.disk.Struck(), Harmless: c.disk.Harmless(), Counts: c.disk.Counts(), Steps: c.disk.Steps(), WasCut: c.disk.WasCut()}
	return nil
}

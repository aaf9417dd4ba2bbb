package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/exec"
)

// callKind is a call of a file system that can fail.
type callKind string

// The kinds, as brittle names them.
const (
	callWrite  callKind = "write"
	callSync   callKind = "fsync"
	callRename callKind = "rename"
	callClose  callKind = "close"
)

// disk is a file system that the program brittle serves: it loses what was not synced,
// and fails where it is told to. The program is a module of its own, so it is spoken to
// by net/rpc; its documentation says what each request means.
type disk struct {
	process *exec.Cmd
	ask     *rpc.Client
}

// diskState is what happened on a disk since the last failAt and the last cutAt.
type diskState struct {
	Struck   string
	Harmless bool
	Counts   map[callKind]int
	Steps    int
	WasCut   bool
}

// mountDisk mounts an empty disk over an empty folder. Where this machine cannot mount
// it, the error is errSkipped.
func mountDisk(ctx context.Context, brittle, dir string, eager bool) (*disk, error) {
	// An interrupt does not end it: it unmounts the disk after those who use it.
	c := exec.CommandContext(context.WithoutCancel(ctx), brittle, fmt.Sprintf("-eager=%t", eager))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("a disk that fails: %w", err)
	}
	d := &disk{process: c, ask: jsonrpc.NewClient(pipes{out, in})}
	if err := d.request("Mount", dir); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: root and /dev/fuse mount a disk that fails: %w", errSkipped, err), d.unmount())
	}
	return d, nil
}

// pipes are a program's output and input as one.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// request asks for what has no answer.
func (d *disk) request(what string, with any) error {
	if err := d.ask.Call("Control."+what, with, &struct{}{}); err != nil {
		return fmt.Errorf("%s of the disk that fails: %w", what, err)
	}
	return nil
}

// failAt makes the n-th call of a kind fail, counted from now; an empty kind is none.
func (d *disk) failAt(kind callKind, n int) error {
	return d.request("FailAt", struct {
		Kind callKind
		At   int
	}{kind, n})
}

// cutAt takes the power away before the n-th call that changes something, counted from
// now, and kills the process that victim names; 0 is never.
func (d *disk) cutAt(n int) error { return d.request("CutAt", n) }

func (d *disk) victim(p *os.Process) error { return d.request("Victim", p.Pid) }

// losePower leaves what the medium has.
func (d *disk) losePower(rng *rand.Rand) error {
	return d.request("LosePower", [2]uint64{rng.Uint64(), rng.Uint64()})
}

// forget gives programs what the medium has, where a sync failed.
func (d *disk) forget() error { return d.request("Forget", struct{}{}) }

func (d *disk) state() (s diskState, err error) {
	if err := d.ask.Call("Control.State", struct{}{}, &s); err != nil {
		return s, fmt.Errorf("state of the disk that fails: %w", err)
	}
	return s, nil
}

// unmount ends the program.
func (d *disk) unmount() error {
	return errors.Join(d.ask.Close(), d.process.Wait())
}

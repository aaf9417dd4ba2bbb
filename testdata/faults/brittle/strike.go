package main

import "syscall"

// Kind is a call that can fail.
type Kind string

// The calls that can be made to fail. A write that failed fails again at the same place.
// A close counts where something was written through the handle, and throws away what
// was not synced, as that of a disk far away may.
const (
	Write  Kind = "write"
	Sync   Kind = "fsync" // of files and of folders
	Rename Kind = "rename"
	Close  Kind = "close"
)

// strikes are what goes wrong, and when.
type strikes struct {
	counts map[Kind]int
	kind   Kind
	at     int
	struck string // the path that failed
	clean  bool   // and there was nothing to lose
	bad    *node  // where a write failed, it fails again
	badAt  int64

	steps int // calls that change something
	cut   int
	off   bool
	kill  func()
}

// FailAt makes the n-th call of a kind fail, counted from now.
func (d *Disk) FailAt(kind Kind, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counts, d.kind, d.at, d.struck, d.bad = map[Kind]int{}, kind, n, "", nil
}

// Struck gives the path of the file or folder whose call failed; empty where none did.
func (d *Disk) Struck() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.struck
}

// Counts gives how many calls of each kind there were since FailAt.
func (d *Disk) Counts() map[Kind]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := map[Kind]int{}
	for k, n := range d.counts {
		out[k] = n
	}
	return out
}

// Steps gives how many calls changed something, or made it durable.
func (d *Disk) Steps() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.steps
}

// CutAt takes the power away before the n-th such call, counted from now: kill is
// called, and nothing is answered any more but EIO.
func (d *Disk) CutAt(n int, kill func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps, d.cut, d.kill = 0, n, kill
}

// WasCut reports whether the power went.
func (d *Disk) WasCut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.off
}

// step counts a call that changes something; false is that there is no power.
func (d *Disk) step() bool {
	if d.off {
		return false
	}
	if d.steps++; d.steps == d.cut {
		d.off = true
		d.kill()
		return false
	}
	return true
}

// strike counts a call of a kind on n, and reports whether it has to fail.
func (d *Disk) strike(kind Kind, n *node) bool {
	if d.counts == nil {
		d.counts = map[Kind]int{}
	}
	if d.counts[kind]++; kind != d.kind || d.counts[kind] != d.at {
		return false
	}
	d.struck, d.clean = n.path(), len(n.dirty) == 0
	return true
}

// Harmless reports whether what failed had nothing to lose: a close after a sync.
func (d *Disk) Harmless() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kind == Close && d.clean
}

// eio is what every fault says.
const eio = syscall.EIO

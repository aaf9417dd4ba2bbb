package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// A heap is kept small, unless what has to be kept is large, or somebody who
// starts kubexm wants it otherwise.
func TestFrugal(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	env := func(own bool) func(string) (string, bool) {
		return func(name string) (string, bool) { return "1GiB", own && name == "GOMEMLIMIT" }
	}
	frugal(env(true))()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("the limit was set to %d over one of the user's own", got)
	}
	settle := frugal(env(false))
	if got := debug.SetMemoryLimit(-1); got != frugalHeap {
		t.Errorf("the limit is %d, not %d", got, frugalHeap)
	}
	large := make([]byte, 2*frugalHeap)
	settle()
	if got := debug.SetMemoryLimit(-1); got < int64(2*len(large)) {
		t.Errorf("the limit is %d with %d bytes in use", got, len(large))
	}
	runtime.KeepAlive(large)
}

package main

import (
	"runtime"
	"runtime/debug"
)

// frugalHeap is the memory limit in bytes of commands that only copy data. Without a
// limit Go's heap doubles before it is collected, and most of it would be garbage. The
// program's code and tables need about as much again.
const frugalHeap = 24 << 20

// frugal sets the memory limit to frugalHeap, unless GOMEMLIMIT is set. The caller must
// call the returned function when all long-lived data is loaded: it raises the limit if
// the heap is larger than expected, because a limit that is always exceeded only costs
// time in the garbage collector.
func frugal(getenv func(string) (string, bool)) (settle func()) {
	if _, own := getenv("GOMEMLIMIT"); own {
		return func() {}
	}
	debug.SetMemoryLimit(frugalHeap)
	return func() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		debug.SetMemoryLimit(max(frugalHeap, 2*int64(m.HeapAlloc))) //nolint:gosec // no heap has 2^63 bytes
	}
}

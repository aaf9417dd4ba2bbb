package main

import (
	"runtime"
	"runtime/debug"
)

// frugalHeap is what a command that only moves bytes makes do with, in bytes: Go's
// heap doubles before it is looked through, and most of it would be what was used
// once. The program's own code and tables come on top, about as much again.
const frugalHeap = 24 << 20

// frugal has the heap looked through in time to stay below frugalHeap, unless
// GOMEMLIMIT says something else. What it gives is called once what the command
// keeps is there: a heap that holds more than expected gets room to work in,
// because a limit that cannot be kept costs time and saves nothing.
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

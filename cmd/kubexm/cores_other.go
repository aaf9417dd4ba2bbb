//go:build !linux

package main

import "golang.org/x/sys/unix"

// noCores keeps the kernel from writing this process's memory to disk, whatever ends
// it: passwords and keys are in it.
func noCores() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }

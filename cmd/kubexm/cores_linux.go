package main

import (
	"errors"

	"golang.org/x/sys/unix"
)

// noCores keeps the kernel from writing this process's memory to disk, whatever ends
// it: passwords and keys are in it. It also keeps other processes of the same user
// from reading it.
func noCores() error {
	return errors.Join(unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}), unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

package main

import (
	"errors"

	"golang.org/x/sys/unix"
)

// noCores disables core dumps of this process, because its memory contains passwords
// and keys. It also prevents other processes of the same user from reading the memory.
func noCores() error {
	return errors.Join(unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}), unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

//go:build !linux

package main

import "golang.org/x/sys/unix"

// noCores disables core dumps of this process, because its memory contains passwords
// and keys.
func noCores() error { return unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }

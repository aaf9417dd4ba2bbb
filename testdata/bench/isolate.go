package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// isolated reports whether there is only the loopback link, so that nothing can be reached.
func isolated() bool {
	all, err := net.Interfaces()
	if err != nil {
		return false
	}
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 {
			return false
		}
	}
	return true
}

// again runs this program, with its servers, in a new network namespace. An error means that
// it did not run: a container may not be allowed to create one.
func again(ctx context.Context, args []string, stdout, stderr io.Writer) (code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	c := exec.CommandContext(ctx, self, args...) //nolint:gosec // its own arguments, to itself
	c.Stdout, c.Stderr = stdout, stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = time.Minute // it removes its work set
	err = c.Run()
	if c.ProcessState == nil {
		return 0, err
	}
	if err != nil {
		return max(c.ProcessState.ExitCode(), 1), nil // it has printed the reason
	}
	return 0, nil
}

// loopback brings the loopback link up, which is down in a new namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	link, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, link); err != nil {
		return err
	}
	if link.Uint16()&unix.IFF_UP != 0 {
		return nil
	}
	link.SetUint16(link.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, link)
}

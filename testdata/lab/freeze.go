package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// include/uapi/linux/fs.h
const (
	freezeFS = 0xc0045877 // FIFREEZE, _IOWR('X', 119, int)
	thawFS   = 0xc0045878 // FITHAW, _IOWR('X', 120, int)
)

// frozen are file systems of hosts that take no writes.
type frozen struct {
	hosts []*Host
	roots []*os.File
	guard *exec.Cmd
	alive io.Closer
}

// freeze stops all writes to the disks of hosts, with everything written out, so that
// all are of one moment. It lasts until thaw, or the end of this process.
func freeze(ctx context.Context, hosts []*Host) (*frozen, error) {
	f := &frozen{hosts: hosts}
	for _, h := range hosts {
		root, err := h.root()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("host %s: %w", h.Name, err), f.close())
		}
		f.roots = append(f.roots, root)
	}
	// What takes long is written before anything stands still.
	if err := f.each(func(fd int) error { return unix.Syncfs(fd) }); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if err := f.watch(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	err := f.each(func(fd int) error { return unix.IoctlSetInt(fd, freezeFS, 0) })
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, errors.Join(fmt.Errorf("freeze the disks: %w", err), f.thaw())
	}
	return f, nil
}

// guarding thaws what it is given, in /proc, as soon as the process that started it is
// gone. What is not frozen then, fsfreeze refuses.
const guarding = `read -r _; for root; do fsfreeze --unfreeze "$root"; done; exit 0`

// watch starts a process that thaws the disks if this one is killed. A session of its
// own keeps the terminal's interrupt from it.
func (f *frozen) watch() error {
	args := []string{"-c", guarding, "bash"}
	for _, h := range f.hosts {
		for _, id := range h.Holder.children() {
			args = append(args, fmt.Sprintf("/proc/%d/root/", id))
		}
	}
	f.guard = exec.Command("bash", args...)
	f.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := f.guard.StdinPipe()
	if err != nil {
		return err
	}
	f.alive = in
	return f.guard.Start()
}

// thaw lets the hosts write again.
func (f *frozen) thaw() error {
	err := f.each(func(fd int) error {
		if err := unix.IoctlSetInt(fd, thawFS, 0); !errors.Is(err, unix.EINVAL) { // it was not frozen
			return err
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("thaw the disks: %w", err)
	}
	err = errors.Join(err, f.alive.Close())
	_ = f.guard.Wait() // it says nothing that was not said
	return errors.Join(err, f.close())
}

func (f *frozen) each(do func(fd int) error) error {
	var g errgroup.Group
	for i, root := range f.roots {
		g.Go(func() error {
			if err := do(int(root.Fd())); err != nil {
				return fmt.Errorf("host %s: %w", f.hosts[i].Name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (f *frozen) close() error {
	var errs []error
	for _, root := range f.roots {
		errs = append(errs, root.Close())
	}
	return errors.Join(errs...)
}

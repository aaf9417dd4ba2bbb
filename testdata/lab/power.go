package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// The kernel's request to a file system to stop where it is, and the wish that its
// journal be not written out before: fs/ext4/ext4.h and include/uapi/linux/fs.h.
const (
	shutDown   = 0x8004587d // _IOR('X', 125, __u32)
	withoutLog = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
)

// Cut takes the power from a host: what was not yet on its disk is lost, all its
// processes are gone, and so is all that it keeps in memory, its network links and
// rules among it. Boot brings it back.
func (l *Lab) Cut(h *Host) error {
	if err := l.cut(context.Background(), h); err != nil {
		return fmt.Errorf("take the power from %s: %w", h.Name, err)
	}
	return nil
}

func (l *Lab) cut(ctx context.Context, h *Host) error {
	l.hangUp(ctx, h)
	if h.emulated() {
		if !h.Holder.alive() {
			return errOff
		}
		return l.end(h)
	}
	root, err := h.root()
	if err != nil {
		return err
	}
	err = keepFreed(root)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(root.Fd()), shutDown, withoutLog)
	}
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("stop its file system: %w", err)
	}
	return l.end(h)
}

// keepFreed remounts a file system so that it gives no blocks back to what is below it, and writes nothing.
// ext4 with discard otherwise gives back what the last transaction freed, although that one was lost: files
// whose deletion never reached the disk would have zeros then.
func keepFreed(root *os.File) error {
	fs, err := unix.Fspick(int(root.Fd()), "", unix.FSPICK_EMPTY_PATH)
	if err != nil {
		return os.NewSyscallError("fspick", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigSetFlag(fs, "nodiscard"); err != nil {
		return os.NewSyscallError("fsconfig", err)
	}
	return os.NewSyscallError("fsconfig", unix.FsconfigReconfigure(fs))
}

// off takes the power from a host that may be off already, or have begun to start.
func (l *Lab) off(ctx context.Context, h *Host) error {
	if l.cut(ctx, h) == nil {
		return nil
	}
	return l.end(h)
}

// end ends all processes of a host, and returns when nothing has its disk any more.
func (l *Lab) end(h *Host) error {
	for _, id := range h.Holder.children() {
		if h.Holder.alive() {
			_ = syscall.Kill(id, syscall.SIGKILL)
		}
	}
	last := syscall.Signal(0) // it ends by itself, with its child
	if h.emulated() {
		last = syscall.SIGKILL
	}
	if err := h.Holder.end(last); err != nil {
		return err
	}
	return released(l.disk(h))
}

// errOff is why a host has no file system to do something with.
var errOff = errors.New("it does not run")

// root opens the top of a host's file system. A host that has begun to start has the
// machine's yet, which is not given to anybody.
func (h *Host) root() (*os.File, error) {
	children := h.Holder.children()
	if len(children) == 0 || !h.Holder.alive() {
		return nil, errOff
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/root/", children[0]))
	if err != nil {
		return nil, err
	}
	var own, machine unix.Stat_t
	if err := errors.Join(unix.Fstat(int(f.Fd()), &own), unix.Stat("/", &machine)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if own.Dev == machine.Dev {
		return nil, errors.Join(errOff, f.Close())
	}
	return f, nil
}

// Boot starts a host whose power was cut, and returns when it is up. Its disk is as
// the cut left it. What does not start on it is none of the lab's: packages bring
// units that this kernel has nothing for.
func (l *Lab) Boot(ctx context.Context, h *Host) error { return l.BootAll(ctx, h) }

// BootAll starts hosts side by side; without hosts all that are off.
func (l *Lab) BootAll(ctx context.Context, hosts ...*Host) error {
	if len(hosts) == 0 {
		for i := range l.Hosts {
			if !l.Hosts[i].Holder.alive() {
				hosts = append(hosts, &l.Hosts[i])
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	var g errgroup.Group // one that does not start says nothing of the others
	for _, h := range hosts {
		g.Go(func() error {
			if err := l.restart(ctx, h); err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
			return l.waitHost(ctx, h, l.tell(ctx, h))
		})
	}
	return errors.Join(g.Wait(), l.save())
}

// tell is what waitHost is given where a host may have units that do not start.
func (l *Lab) tell(ctx context.Context, h *Host) func(units string) {
	return func(units string) {
		l.log.InfoContext(ctx, "some units did not start", "host", h.Name, "units", units)
	}
}

// restart starts a host that is off, from its disk.
func (l *Lab) restart(ctx context.Context, h *Host) error {
	l.hangUp(ctx, h)
	if err := l.relink(ctx, h); err != nil {
		return err
	}
	// Groups that its last life left would be there before their units are.
	if err := l.dropGroups(h); err != nil {
		return err
	}
	// What it was first given is on its disk, and may have been changed since.
	if err := os.RemoveAll(filepath.Join(l.hostDir(h), "seed")); err != nil {
		return err
	}
	if err := l.startHost(ctx, h); err != nil {
		return err
	}
	return l.save() // before it is up, so that Down knows of it
}

// relink puts a host on the network anew: its links and rules were in memory.
func (l *Lab) relink(ctx context.Context, h *Host) error {
	// A namespace goes some time after its name does, so the link is taken away first.
	link := exec.CommandContext(ctx, "ip", "-n", l.netns(""), "link", "show", "v"+h.Name)
	if link.Run() == nil {
		if err := command(ctx, "ip", "-n", l.netns(""), "link", "del", "v"+h.Name); err != nil {
			return err
		}
	}
	if _, err := os.Stat("/run/netns/" + l.netns(h.Name)); err == nil {
		if err := command(ctx, "ip", "netns", "del", l.netns(h.Name)); err != nil {
			return err
		}
	}
	var b batch
	l.plug(&b, h)
	return b.run(ctx)
}

// Unplug takes a host off the network without a word to anybody, and Plug puts it
// back: what was on its way is lost, and no connection ends by it.
func (l *Lab) Unplug(ctx context.Context, h *Host) error {
	l.hangUp(ctx, h)
	return command(ctx, "ip", "-n", l.netns(""), "link", "set", "v"+h.Name, "down")
}

// Plug puts an unplugged host back on the network.
func (l *Lab) Plug(ctx context.Context, h *Host) error {
	return command(ctx, "ip", "-n", l.netns(""), "link", "set", "v"+h.Name, "up")
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

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
	if err := l.cut(h); err != nil {
		return fmt.Errorf("take the power from %s: %w", h.Name, err)
	}
	return nil
}

func (l *Lab) cut(h *Host) error {
	children := h.Holder.children()
	if len(children) == 0 || !h.Holder.alive() {
		return errors.New("it does not run")
	}
	root, err := os.Open(fmt.Sprintf("/proc/%d/root/", children[0]))
	if err != nil {
		return err
	}
	err = unix.IoctlSetPointerInt(int(root.Fd()), shutDown, withoutLog)
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("stop its file system: %w", err)
	}
	for _, id := range children {
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
	if err := h.Holder.end(0); err != nil {
		return err
	}
	return l.released(h)
}

// released returns when nothing has a host's disk any more.
func (l *Lab) released(h *Host) error {
	disk := filepath.Join(l.hostDir(h), "disk.img")
	for try := 0; ; try++ {
		held := false
		loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file") // the pattern is right
		for _, file := range loops {
			of, err := os.ReadFile(file)
			held = held || err == nil && strings.TrimSpace(string(of)) == disk
		}
		if !held {
			return nil
		}
		if try == 200 {
			return errors.New("its disk is still in use")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Boot starts a host whose power was cut, and returns when it is up. Its disk is as
// the cut left it. What does not start on it is none of the lab's: packages bring
// units that this kernel has nothing for.
func (l *Lab) Boot(ctx context.Context, h *Host) error {
	// Its links and rules were in memory. A namespace goes some time after its name
	// does, so the cable is taken away first.
	var b batch
	if err := command(ctx, "ip", "-n", l.netns(""), "link", "del", "v"+h.Name); err != nil {
		return err
	}
	if err := command(ctx, "ip", "netns", "del", l.netns(h.Name)); err != nil {
		return err
	}
	for i := range l.Hosts {
		if l.Hosts[i].Name == h.Name {
			l.join(&b, h.Name, 11+i)
		}
	}
	if err := b.run(ctx); err != nil {
		return err
	}
	// What it was first given is on its disk, and may have been changed since.
	if err := os.RemoveAll(filepath.Join(l.hostDir(h), "seed")); err != nil {
		return err
	}
	if err := l.startHost(h); err != nil {
		return fmt.Errorf("host %s: %w", h.Name, err)
	}
	if err := l.save(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTime)
	defer cancel()
	return l.waitHost(ctx, h, func(units string) {
		l.log.InfoContext(ctx, "some units did not start", "host", h.Name, "units", units)
	})
}

// Unplug takes a host off the network without a word to anybody, and Plug puts it
// back: what was on its way is lost, and no connection ends by it.
func (l *Lab) Unplug(ctx context.Context, h *Host) error {
	return command(ctx, "ip", "-n", l.netns(""), "link", "set", "v"+h.Name, "down")
}

// Plug puts an unplugged host back on the network.
func (l *Lab) Plug(ctx context.Context, h *Host) error {
	return command(ctx, "ip", "-n", l.netns(""), "link", "set", "v"+h.Name, "up")
}

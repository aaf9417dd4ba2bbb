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

// The folder of labs lies on a file system that copies a file by sharing its blocks
// (reflink): a host's disk is copied in milliseconds then, however much is on it.
// Where the cache's own file system cannot do that, an XFS in a sparse file of the
// cache is mounted over the folder, while there is a lab.
const labsSize = 1 << 40 // bytes; what is not in use takes no space, and what was is given back

func labsFile(cache string) string { return filepath.Join(cache, "labs.xfs") }

// attach sees to it that the folder of labs can share blocks.
func attach(ctx context.Context, cache string) error {
	dir, file := labsDir(cache), labsFile(cache)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if is, err := mounted(dir); err != nil || is {
		return err
	}
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		if sharesBlocks(dir) {
			return nil
		}
		if err := makeXFS(ctx, file); err != nil {
			return err
		}
	}
	hidden, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range hidden {
		if e.IsDir() {
			return fmt.Errorf("%s is not from a lab on %s: remove it", filepath.Join(dir, e.Name()), file)
		}
	}
	for try := 0; ; try++ { // the loop device of the last mount may be on its way out
		err := command(ctx, "mount", "-o", "loop,noatime,discard", file, dir)
		if err == nil || try == 20 || ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func makeXFS(ctx context.Context, file string) error {
	part := file + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(labsSize), f.Close()); err != nil {
		return err
	}
	if err := command(ctx, "mkfs.xfs", "-q", "-f", "-m", "reflink=1", "-l", "size=64m", "-L", "kubexm-labs", part); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// detach unmounts the folder of labs. Where somebody is in it, it stays: whoever
// adds or removes a lab next tries again.
func detach(cache string) error {
	dir := labsDir(cache)
	if is, err := mounted(dir); err != nil || !is {
		return err
	}
	var err error
	for range 20 {
		if err = unix.Unmount(dir, 0); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if errors.Is(err, unix.EBUSY) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", dir, err)
	}
	// A process with mounts of its own may have it yet; the next lab mounts it beside that.
	_ = released(labsFile(cache))
	return nil
}

// mounted reports whether a folder is the top of a file system.
func mounted(dir string) (bool, error) {
	var own, above syscall.Stat_t
	if err := errors.Join(syscall.Stat(dir, &own), syscall.Stat(filepath.Dir(dir), &above)); err != nil {
		return false, err
	}
	return own.Dev != above.Dev, nil
}

// sharesBlocks reports whether files in a folder can share blocks.
func sharesBlocks(dir string) bool {
	from, err := os.CreateTemp(dir, ".reflink")
	if err != nil {
		return false
	}
	defer os.Remove(from.Name())
	defer from.Close()
	if _, err := from.Write(make([]byte, 1<<16)); err != nil {
		return false
	}
	to := from.Name() + ".copy"
	defer os.Remove(to)
	return reflink(from.Name(), to) == nil
}

// reflink makes a file that shares the blocks of another.
func reflink(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	err = unix.IoctlFileClone(int(dst.Fd()), int(src.Fd()))
	return errors.Join(err, dst.Close())
}

// copyDisk copies a disk under its name whole or not at all: by sharing its blocks, or
// where that cannot be, byte by byte with its holes.
func copyDisk(ctx context.Context, from, to string) error {
	part := to + ".part"
	if err := reflink(from, part); err != nil {
		if err := command(ctx, "cp", "--sparse=always", from, part); err != nil {
			return err
		}
	}
	return os.Rename(part, to)
}

// image gives the disk that a host gets a copy of: that of its root, or one with the
// same files and a size of its own. It lies beside the labs, so that it can share its
// blocks with them.
func (l *Lab) image(ctx context.Context, h *Host) (string, error) {
	dir := filepath.Join(filepath.Dir(l.Dir), ".roots")
	name := filepath.Base(h.Rootfs)
	if l.DiskSize > 0 {
		name += fmt.Sprintf("-%d", l.DiskSize)
	}
	image := filepath.Join(dir, name+".img")
	err := locked(ctx, l.cache(), func() error { // labs side by side ask for the same
		if _, err := os.Stat(image); err == nil {
			return nil
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := dropImages(dir, h.Root, filepath.Base(h.Rootfs)); err != nil {
			return err
		}
		if l.DiskSize == 0 {
			return copyDisk(ctx, h.Rootfs+".img", image)
		}
		return sizedImage(ctx, h.Rootfs, image, l.DiskSize)
	})
	return image, err
}

// dropImages removes the images of what a root was before it changed.
func dropImages(dir, root, current string) error {
	old, err := filepath.Glob(filepath.Join(dir, root+"-*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if strings.HasPrefix(filepath.Base(path), current) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// sizedImage makes a disk from a root's folder as rootfs-lab.sh does, of another size.
func sizedImage(ctx context.Context, rootfs, image string, size int64) error {
	part := image + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	if err := command(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-L", "lab", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", "-d", rootfs, part); err != nil {
		return err
	}
	return os.Rename(part, image)
}

// released returns when no loop device has a file any more. The path that a device
// shows is the one that whoever set it up saw, in a tree of mounts that may be gone; so
// files are told by what they are.
func released(file string) error {
	var is syscall.Stat_t
	if err := syscall.Stat(file, &is); err != nil {
		return err
	}
	for try := 0; ; try++ {
		held := false
		devices, _ := filepath.Glob("/sys/block/loop*/loop") // the pattern is right
		for _, at := range devices {
			dev, err := os.Open(filepath.Join("/dev", filepath.Base(filepath.Dir(at))))
			if err != nil {
				continue // it went
			}
			info, err := unix.IoctlLoopGetStatus64(int(dev.Fd()))
			held = held || err == nil && info.Inode == is.Ino && info.Device == is.Dev
			_ = dev.Close()
		}
		if !held {
			return nil
		}
		if try == 200 {
			return fmt.Errorf("%s is still in use", file)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

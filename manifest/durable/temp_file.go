package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy means that another process, or another goroutine of this one, is writing the same
// file.
var ErrBusy = errors.New("another process is writing it")

// begin creates the temporary file temp, and replaces one that an interrupted process left
// over. held is a second handle of the file with a lock, which shows other processes that the
// file is in use; the kernel releases the lock when the process ends. begin waits up to two
// seconds for another process that writes the same file.
func begin(root *os.Root, temp string, mode fs.FileMode) (f, held *os.File, err error) {
	for range tries {
		f, err = root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		switch {
		case errors.Is(err, fs.ErrExist):
			err = removeLeftover(root, temp)
		case err == nil:
			held, err = hold(root, temp)
			if err == nil && same(f, held) {
				return f, held, nil
			}
			// Another process removed the file as a leftover before the lock was taken, and may
			// have created its own file since then. That file must not be renamed.
			err = errors.Join(err, f.Close(), drop(held))
		}
		switch {
		case errors.Is(err, ErrBusy):
			time.Sleep(pause) //nolint:forbidigo // two seconds in total: too short to need a context
		case err != nil:
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%s: %w", temp, ErrBusy)
}

// The number of attempts, and the pause between them, if another process is writing the file.
const (
	tries = 200
	pause = 10 * time.Millisecond
)

// same reports whether two handles refer to the same file; held may be nil.
func same(f, held *os.File) bool {
	if held == nil {
		return false
	}
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := held.Stat()
	return err == nil && os.SameFile(a, b)
}

// drop releases a lock; held may be nil.
func drop(held *os.File) error {
	if held == nil {
		return nil
	}
	return held.Close()
}

// removeLeftover removes a temporary file that an interrupted process left over. It returns
// ErrBusy if a process is still writing the file.
func removeLeftover(root *os.Root, temp string) error {
	held, err := hold(root, temp)
	if err != nil || held == nil {
		return err
	}
	return errors.Join(root.Remove(temp), held.Close())
}

// hold opens and locks a file. It returns nil if the file no longer exists.
func hold(root *os.Root, temp string) (*os.File, error) {
	at, err := root.Lstat(temp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !at.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: temp, Err: errors.New("not a regular file; remove it")}
	}
	held, err := root.OpenFile(temp, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = held.Close() // nothing was written through it
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", temp, ErrBusy)
		}
		return nil, fmt.Errorf("lock %s: %w", temp, err)
	}
	mine, err := held.Stat()
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	if now, err := root.Lstat(temp); err != nil || !os.SameFile(mine, now) {
		return nil, held.Close()
	}
	return held, nil
}

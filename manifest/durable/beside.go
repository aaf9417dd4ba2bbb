package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrBusy is that another process, or another part of this one, writes the same file now.
var ErrBusy = errors.New("it is being written by somebody else")

// begin makes the file that stands for another until it is whole, in place of what a
// kill left. held is a second handle of it, whose lock tells others that it is no such
// thing; it goes with the process. Another one who writes the same file is waited for,
// as long as writing takes.
func begin(root *os.Root, beside string, mode fs.FileMode) (f, held *os.File, err error) {
	for range tries {
		f, err = root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		switch {
		case errors.Is(err, fs.ErrExist):
			err = takeAway(root, beside)
		case err == nil:
			held, err = hold(root, beside)
			if err == nil && same(f, held) {
				return f, held, nil
			}
			// Somebody took it for a leftover before it was held, and may have made one of his
			// own there since, which is nothing to rename.
			err = errors.Join(err, f.Close(), drop(held))
		}
		switch {
		case errors.Is(err, ErrBusy):
			time.Sleep(pause) //nolint:forbidigo // two seconds in all: what writes one small file is no wait to interrupt
		case err != nil:
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%s: %w", beside, ErrBusy)
}

// How often, and after which pause, a file is tried that somebody else is writing.
const (
	tries = 200
	pause = 10 * time.Millisecond
)

// same tells whether two handles are of one file; held may be nil.
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

// drop gives a lock back; held may be nil.
func drop(held *os.File) error {
	if held == nil {
		return nil
	}
	return held.Close()
}

// takeAway removes what a kill left beside a name, and nothing that is being written.
func takeAway(root *os.Root, beside string) error {
	held, err := hold(root, beside)
	if err != nil || held == nil {
		return err
	}
	return errors.Join(root.Remove(beside), held.Close())
}

// hold opens and locks the file of that name; nil where it has gone meanwhile.
func hold(root *os.Root, beside string) (*os.File, error) {
	at, err := root.Lstat(beside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !at.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: beside, Err: errors.New("is no file; remove it")}
	}
	held, err := root.OpenFile(beside, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = held.Close() // nothing was written through it
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", beside, ErrBusy)
		}
		return nil, fmt.Errorf("lock %s: %w", beside, err)
	}
	mine, err := held.Stat()
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	if now, err := root.Lstat(beside); err != nil || !os.SameFile(mine, now) {
		return nil, held.Close()
	}
	return held, nil
}

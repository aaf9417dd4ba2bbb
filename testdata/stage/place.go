package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkout returns a path of this checkout that is the same for every checkout: a symbolic
// link in the cache. Go's test cache identifies the files that a test has opened by their
// absolute paths, so that its results would only be valid for one clone. The path is valid
// until release is called. While another run uses it, the checkout's own path is returned.
func checkout(cache, dir string) (path string, release func() error, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(cache, "checkout.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return dir, lock.Close, nil
		}
		return "", nil, errors.Join(fmt.Errorf("lock %s: %w", lock.Name(), err), lock.Close())
	}
	link := filepath.Join(cache, "checkout")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, errors.Join(err, lock.Close())
	}
	if err := os.Symlink(dir, link); err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	return link, lock.Close, nil
}

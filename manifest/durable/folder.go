package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SyncFolder makes durable which names a folder below root has: those that were made,
// renamed and removed in it.
func SyncFolder(root *os.Root, name string) error {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(synced(d), d.Close())
}

// synced syncs a folder. A disk that knows no such thing (some network and FUSE file
// systems) says so, which is no reason not to write there.
func synced(d *os.File) error {
	err := d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	return err
}

// SyncDir is SyncFolder for a folder by its path.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(synced(d), d.Close())
}

// MkdirAll is os.MkdirAll whose new folders outlast a loss of power: a file is as
// durable as the names of all folders above it.
func MkdirAll(path string, mode fs.FileMode) error {
	path = filepath.Clean(path)
	var parents []string // of what is missing, the lowest first
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break // what is wrong with it, os.MkdirAll says
		}
		parents = append(parents, filepath.Dir(at))
	}
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	for _, p := range parents {
		if err := SyncDir(p); err != nil {
			return err
		}
	}
	return nil
}

package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// SyncFolder syncs a folder below root, which makes created, renamed and removed names durable.
func SyncFolder(root *os.Root, name string) error {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(synced(d), d.Close())
}

// synced syncs a folder. It ignores the errors of file systems that do not support this, such
// as some network and FUSE file systems.
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

// MkdirAll is os.MkdirAll for folders that survive a loss of power. It syncs the parents of all
// new folders: a file is only as durable as the names of the folders above it.
func MkdirAll(path string, mode fs.FileMode) error {
	path = filepath.Clean(path)
	var parents []string // of missing folders, the lowest first
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break // os.MkdirAll returns any other error
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

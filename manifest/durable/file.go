package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WriteFile replaces the content of a file atomically: readers see the old content or the new.
// mode, minus the umask, applies to new and to replaced files. After WriteFile returns nil, the
// file survives a loss of power. After an error the file has its old content, or the complete
// new content.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	return at(path, content, mode, rename, nil)
}

// Create is WriteFile for a file that must not exist. It returns fs.ErrExist for an existing
// file and does not change it. After any error the file has none of the content.
func Create(path string, content []byte, mode fs.FileMode) error {
	return at(path, content, mode, link, (*os.Root).Remove)
}

// Write writes the content of from to a file below root, as WriteFile does, but does not sync
// the folder. Callers that write many files call SyncFolder once.
func Write(root *os.Root, name string, mode fs.FileMode, from io.Reader) error {
	if err := write(root, name, mode, from, rename); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(root.Name(), name), err)
	}
	return nil
}

// TempPath returns the path of the temporary file for path. The name is fixed, so that the next
// writer of the file removes a leftover of an interrupted process.
func TempPath(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
}

// at writes one file and syncs its folder. If syncing fails, undo removes the name.
func at(path string, content []byte, mode fs.FileMode, name naming, undo func(root *os.Root, name string) error) error {
	dir, base := filepath.Dir(path), filepath.Base(path)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = root.Close() }() // a handle of the folder: closing it cannot lose data
	if err := write(root, base, mode, bytes.NewReader(content), name); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err = SyncFolder(root, "."); err != nil && undo != nil {
		err = errors.Join(err, undo(root, base))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// naming moves a finished file to its name below root.
type naming func(root *os.Root, temp, name string) error

func rename(root *os.Root, temp, name string) error { return root.Rename(temp, name) }

// link moves a file as rename does, but never replaces another one. On file systems without
// hard links (FAT) it checks for the file first, which is not atomic.
func link(root *os.Root, temp, name string) error {
	err := root.Link(temp, name)
	if err == nil {
		_ = root.Remove(temp) // a leftover is a second name; the next writer removes it
		return nil
	}
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if _, there := root.Lstat(name); !errors.Is(there, fs.ErrNotExist) {
		return err
	}
	return root.Rename(temp, name)
}

func write(root *os.Root, name string, mode fs.FileMode, from io.Reader, named naming) error {
	temp := TempPath(name)
	f, held, err := begin(root, temp, mode)
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }() // only holds the lock
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Sync() // no retry: after an error the kernel drops the data, and a second sync would succeed
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = named(root, temp, name)
	}
	if err != nil {
		_ = root.Remove(temp) // the next writer of the file removes a leftover
	}
	return err
}

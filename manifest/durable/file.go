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

// WriteFile puts content under a name, in place of what stood there: who reads it,
// whenever, finds the old content or the new. mode is for a new file and for one that
// is replaced, less what the umask takes. When it returns nil the file outlasts a loss
// of power; after an error the name has what it had, or content whole.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	return at(path, content, mode, rename, nil)
}

// Create is WriteFile for a name that nothing may stand under: one that does stays, and
// is fs.ErrExist. After any error nothing of content is there.
func Create(path string, content []byte, mode fs.FileMode) error {
	return at(path, content, mode, link, (*os.Root).Remove)
}

// Write puts what from gives under a name below root, as WriteFile does, and leaves the
// folder to SyncFolder: who writes many files syncs it once.
func Write(root *os.Root, name string, mode fs.FileMode, from io.Reader) error {
	if err := write(root, name, mode, from, rename); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Join(root.Name(), name), err)
	}
	return nil
}

// Beside is where a file is made that will be at path. The name is fixed: what a kill
// leaves there, the next one who writes the file takes away.
func Beside(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
}

// at writes one file and syncs its folder. Where that fails, undo takes the name back.
func at(path string, content []byte, mode fs.FileMode, name naming, undo func(root *os.Root, name string) error) error {
	dir, base := filepath.Dir(path), filepath.Base(path)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = root.Close() }() // a handle of the folder, which nothing is written through
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

// naming gives a finished file its name below root.
type naming func(root *os.Root, beside, name string) error

func rename(root *os.Root, beside, name string) error { return root.Rename(beside, name) }

// link names a file as rename does, but never over another one. Where the disk knows
// no links (FAT) it looks first, which is as much as can be had there.
func link(root *os.Root, beside, name string) error {
	err := root.Link(beside, name)
	if err == nil {
		_ = root.Remove(beside) // what stays is a second name, and is taken away by the next
		return nil
	}
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if _, there := root.Lstat(name); !errors.Is(there, fs.ErrNotExist) {
		return err
	}
	return root.Rename(beside, name)
}

func write(root *os.Root, name string, mode fs.FileMode, from io.Reader, named naming) error {
	beside := Beside(name)
	f, held, err := begin(root, beside, mode)
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }() // nothing is written through it
	_, err = io.Copy(f, from)
	if err == nil {
		err = f.Sync() // once: after an error the kernel has thrown the bytes away, and says of the rest that all is well
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = named(root, beside, name)
	}
	if err != nil {
		_ = root.Remove(beside) // what stays of it is taken away by the next who writes the file
	}
	return err
}

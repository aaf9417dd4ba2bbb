package archive

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// pathLock is the exclusive lock for writing one path: a locked, hidden file beside it, with
// the pid of the holder. The holder removes the file on release. After a killed holder the
// file remains but the lock does not, so the next process can take it.
type pathLock struct{ f *flock.Flock }

// hidden returns the path of a hidden file beside path: dir/.name.suffix.
func hidden(path, suffix string) string {
	dir, name := filepath.Split(path)
	return filepath.Join(dir, "."+name+"."+suffix)
}

// lockPath locks path for writing, or returns ErrBusy with the holder.
func lockPath(path string) (*pathLock, error) {
	name := hidden(path, "lock")
	for {
		f := flock.New(name)
		ok, err := f.TryLock()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, busy(path, name)
		}
		// The previous holder may have removed the file after it was opened here. Then this
		// lock is on a file that no other process can find.
		mine, err := f.Stat()
		if err != nil {
			return nil, joinClose(err, f)
		}
		if found, err := os.Stat(name); err != nil || !os.SameFile(mine, found) {
			if err := f.Close(); err != nil {
				return nil, err
			}
			continue
		}
		if err := os.WriteFile(name, strconv.AppendInt(nil, int64(os.Getpid()), 10), 0o600); err != nil {
			return nil, joinClose(err, f)
		}
		return &pathLock{f}, nil
	}
}

func busy(path, name string) error {
	who := "another process"
	if b, err := os.ReadFile(name); err == nil {
		if pid, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			who = "process " + strconv.Itoa(pid)
		}
	}
	return fault(ErrBusy, "", noOffset, "%s is being written by %s", path, who)
}

// release removes the lock file while the lock is still held, and then unlocks. It may be
// called more than once.
func (h *pathLock) release() {
	if h.f.Locked() {
		_ = os.Remove(h.f.Path()) // the next run locks a leftover file
		_ = h.f.Close()
	}
}

func joinClose(err error, f *flock.Flock) error { return errors.Join(err, f.Close()) }

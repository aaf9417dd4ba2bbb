package archive

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// held is the right to write one path. It lies in a hidden file beside it,
// which names the holder and goes when the right is given back. A killed
// holder leaves the file but not the lock, so the next one takes it over.
type held struct{ f *flock.Flock }

// hidden gives the path of a hidden companion of path: dir/.name.suffix.
func hidden(path, suffix string) string {
	dir, name := filepath.Split(path)
	return filepath.Join(dir, "."+name+"."+suffix)
}

// takeLock takes the right to write path or says who has it (ErrBusy).
func takeLock(path string) (*held, error) {
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
		// The holder before may have removed the file after it was opened
		// here: then this lock guards a file that nobody else can find.
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
		return &held{f}, nil
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

// release removes the lock's file while it is still held, then lets go. More
// than once is allowed.
func (h *held) release() {
	if h.f.Locked() {
		_ = os.Remove(h.f.Path()) // a file left behind is taken over by the next run
		_ = h.f.Close()
	}
}

func joinClose(err error, f *flock.Flock) error { return errors.Join(err, f.Close()) }

package archive

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// stage is the temporary directory of an extraction.
type stage struct {
	dir   string // the final directory
	part  string
	lock  *pathLock
	root  *os.Root
	names []string
}

// stageDirs are the directories of an archive's entries.
var stageDirs = []string{"blobs", "blobs/sha256", "kubexm"}

// newStage creates the empty stage of dir.
func newStage(dir string) (*stage, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	lock, err := lockPath(dir)
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, part: hidden(dir, "part"), lock: lock}
	if err := s.begin(); err != nil {
		return nil, errors.Join(err, s.discard())
	}
	return s, nil
}

func (s *stage) begin() error {
	if err := s.free(); err != nil {
		return err
	}
	if err := os.RemoveAll(s.part); err != nil { // of a killed run
		return err
	}
	if err := os.Mkdir(s.part, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(s.part)
	if err != nil {
		return err
	}
	s.root = root
	for _, d := range stageDirs {
		if err := root.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// free checks that the final directory does not exist or is empty.
func (s *stage) free() error {
	fi, err := os.Lstat(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi.IsDir() {
		entries, err := os.ReadDir(s.dir)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return nil
		}
	}
	return fault(ErrExists, "", noOffset, "%s exists and is not an empty directory", s.dir)
}

// create creates an entry's file, which must not exist.
func (s *stage) create(name string) (*os.File, error) {
	s.names = append(s.names, name)
	return s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// publish syncs all files and renames the stage to the final directory.
func (s *stage) publish() error {
	for _, name := range append(append(s.names, stageDirs...), ".") {
		f, err := s.root.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	if err := os.Remove(s.dir); err != nil && !errors.Is(err, os.ErrNotExist) { // empty, or does not exist
		return err
	}
	if err := os.Rename(s.part, s.dir); err != nil {
		return err
	}
	defer s.lock.release()
	return errors.Join(s.root.Close(), durable.SyncDir(filepath.Dir(s.dir)))
}

// discard removes the stage.
func (s *stage) discard() error {
	defer s.lock.release()
	var err error
	if s.root != nil {
		err = s.root.Close()
	}
	return errors.Join(err, os.RemoveAll(s.part))
}

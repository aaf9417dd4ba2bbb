package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
)

// CheckWorkdir refuses a cluster's folder below base that users other than the one running
// kubexm can change: it contains keys, and records that kubexm trusts. It checks .kubexm, the
// cluster's folder and every folder in it. Each must be a folder and not a link, belong to the
// user or to root, and be writable only for its owner. A missing folder is accepted.
func CheckWorkdir(base, cluster string) error {
	top := filepath.Join(base, ".kubexm")
	if err := checkOwner(top); err != nil {
		return ignoreMissing(err)
	}
	dir := filepath.Join(top, cluster)
	return ignoreMissing(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return checkOwner(path) // an unreadable folder may belong to another user
		case err != nil:
			return err
		case d.IsDir():
			return checkOwner(path)
		case d.Type()&fs.ModeSymlink != 0:
			return linkError(path)
		}
		return nil
	}))
}

// ignoreMissing ignores missing files.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func linkError(path string) error {
	return steps.Advise(fmt.Errorf("workdir: %s is a symbolic link", path), "replace the link with the folder that it points to; --workdir is the folder that contains .kubexm")
}

func checkOwner(path string) error {
	i, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch {
	case i.Mode()&fs.ModeSymlink != 0:
		return linkError(path)
	case !i.IsDir():
		return fmt.Errorf("workdir: %s is not a folder", path)
	}
	if st, ok := i.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return steps.Advise(fmt.Errorf("workdir: %s belongs to user %d, who could change kubexm's files in it", path, st.Uid),
			"find out who created it; if it is yours: chown %d %s", os.Geteuid(), connector.Quote([]string{path}))
	}
	if open := i.Mode().Perm() & 0o022; open != 0 {
		return steps.Advise(fmt.Errorf("workdir: users other than the owner can write to %s (mode %04o)", path, i.Mode().Perm()),
			"check whether another user has changed its files; then: chmod go-w %s", connector.Quote([]string{path}))
	}
	return nil
}

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

// CheckWorkdir refuses a cluster's folder below base that others than the user who
// runs kubexm can change: what lies in it are keys, and records that kubexm believes.
// It looks at .kubexm, at the cluster's folder and at every folder in that: each has to
// be a folder and no link, belong to the user or to root, and be writable for its owner
// alone. A folder that does not exist is none that others made.
func CheckWorkdir(base, cluster string) error {
	top := filepath.Join(base, ".kubexm")
	if err := ownLevel(top); err != nil {
		return existing(err)
	}
	dir := filepath.Join(top, cluster)
	return existing(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return ownLevel(path) // a folder that cannot be read may be another's
		case err != nil:
			return err
		case d.IsDir():
			return ownLevel(path)
		case d.Type()&fs.ModeSymlink != 0:
			return linked(path)
		}
		return nil
	}))
}

// existing passes over what is not there.
func existing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func linked(path string) error {
	return steps.Advise(fmt.Errorf("workdir: %s is a symbolic link", path), "move what it leads to into its place; --workdir names the folder that .kubexm lies in")
}

func ownLevel(path string) error {
	i, err := os.Lstat(path)
	if err != nil {
		return err
	}
	switch {
	case i.Mode()&fs.ModeSymlink != 0:
		return linked(path)
	case !i.IsDir():
		return fmt.Errorf("workdir: %s is not a folder", path)
	}
	if st, ok := i.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return steps.Advise(fmt.Errorf("workdir: %s belongs to user %d, who could change what kubexm keeps there", path, st.Uid),
			"look who made it; if it is yours: chown %d %s", os.Geteuid(), connector.Quote([]string{path}))
	}
	if open := i.Mode().Perm() & 0o022; open != 0 {
		return steps.Advise(fmt.Errorf("workdir: others than the owner of %s may write there (mode %04o)", path, i.Mode().Perm()),
			"look whether somebody has; then: chmod go-w %s", connector.Quote([]string{path}))
	}
	return nil
}

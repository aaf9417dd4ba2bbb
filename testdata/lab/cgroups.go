package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// controllers are the hierarchies of version 1 that a host sees.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids"}

// ownCgroups gives the folder of this process in each hierarchy, by the name
// that the hierarchy is mounted under. A host's groups are made below it.
func ownCgroups() (map[string]string, error) {
	f, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		part := strings.SplitN(s.Text(), ":", 3)
		if len(part) != 3 {
			continue
		}
		name := part[1]
		switch {
		case part[0] == "0":
			name = "unified"
		case name == "name=systemd":
			name = "systemd"
		}
		if name != "unified" && name != "systemd" && !slices.Contains(controllers, name) {
			continue
		}
		at[name] = filepath.Join("/sys/fs/cgroup", name, part[2])
	}
	for _, name := range append([]string{"systemd"}, controllers...) {
		if _, err := os.Stat(at[name]); at[name] == "" || err != nil {
			return nil, fmt.Errorf("no control group hierarchy %s under /sys/fs/cgroup", name)
		}
	}
	if _, err := os.Stat(at["unified"]); err != nil {
		delete(at, "unified") // hosts then share one hierarchy less
	}
	return at, nil
}

// makeCgroups makes a host's own groups and lists their folders.
func (l *Lab) makeCgroups(host string) ([]string, error) {
	own, err := ownCgroups()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for name, at := range own {
		dir := filepath.Join(at, "kubexm-lab", l.Name, host)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		if name == "cpuset" { // a group is born without processors
			for _, d := range []string{filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir), dir} {
				if err := inheritCPUs(at, d); err != nil {
					return nil, err
				}
			}
		}
		dirs = append(dirs, dir)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, dir := range dirs {
		l.Cgroups = sorted(append(l.Cgroups, filepath.Dir(dir)))
	}
	return sorted(dirs), nil
}

func inheritCPUs(from, to string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, file), value, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(to, "cgroup.clone_children"), []byte("1"), 0o644)
}

// removeCgroups removes the lab's groups. Groups empty themselves only a
// moment after their last process ended.
func (l *Lab) removeCgroups() error {
	for _, dir := range l.Cgroups {
		if err := emptied(dir); err != nil {
			return err
		}
		_ = os.Remove(filepath.Dir(dir)) // where no other lab has groups in it
	}
	return nil
}

// dropGroups removes the groups that a host which is off has left.
func (l *Lab) dropGroups(h *Host) error {
	l.mu.Lock()
	tops := slices.Clone(l.Cgroups)
	l.mu.Unlock()
	for _, top := range tops {
		if err := emptied(filepath.Join(top, h.Name)); err != nil {
			return err
		}
	}
	return nil
}

// emptied removes a group as soon as it can be.
func emptied(dir string) error {
	for try := 0; ; try++ {
		err := removeGroup(dir)
		if err == nil {
			return nil
		}
		if try == 500 {
			return fmt.Errorf("remove control groups: %w", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// removeGroup removes a group and those in it, the innermost first.
func removeGroup(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.Reverse(dirs)
	for _, d := range dirs {
		if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

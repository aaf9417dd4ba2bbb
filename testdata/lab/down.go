package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Down takes the lab away, with everything that belongs to it, and says what
// it could not remove. It is no error to call it again.
func (l *Lab) Down() error {
	var errs []error
	if l.leave != nil {
		defer l.leave()
	}
	var g errgroup.Group
	for i := range l.Hosts {
		h := &l.Hosts[i]
		g.Go(func() error {
			l.hangUp(context.Background(), h)
			// Nothing in a process namespace outlives its first process: no unit, shim or pod.
			if err := l.end(h); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
			return nil
		})
	}
	errs = append(errs, g.Wait(), l.Watcher.end(syscall.SIGTERM), l.removeNetwork(), l.removeCgroups())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take lab %s down: %w", l.Name, err) // its folder stays, so that this can be done again
	}
	if err := l.release(); err != nil {
		return fmt.Errorf("take lab %s down: %w", l.Name, err)
	}
	if left := l.Leftovers(); len(left) > 0 {
		return fmt.Errorf("lab %s is down, and left behind: %s", l.Name, strings.Join(left, "; "))
	}
	return nil
}

// Leftovers lists what is there of the lab on this machine: while it is up all
// of it, and after Down nothing.
func (l *Lab) Leftovers() []string {
	var left []string
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		left = append(left, err.Error())
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, l.Dir+"/") || strings.Contains(line, "/"+l.netns("")) {
			left = append(left, "mount "+strings.TrimSpace(line))
		}
	}
	patterns := map[string]string{
		"namespace":     "/run/netns/kxl-" + l.Name + "-*",
		"resolver":      "/etc/netns/kxl-" + l.Name + "-*",
		"control group": "/sys/fs/cgroup/*/kubexm-lab/" + l.Name,
		"folder":        l.Dir,
	}
	for _, dir := range l.Cgroups {
		patterns["control group "+dir] = dir
	}
	for what, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // the patterns are right
		for _, path := range found {
			left = append(left, strings.Fields(what)[0]+" "+path)
		}
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file") // as above
	for _, file := range loops {
		// The path begins where the file system that holds it does, or at the machine's top.
		if of, err := os.ReadFile(file); err == nil && strings.Contains(string(of), "/"+l.Name+"/hosts/") {
			left = append(left, "loop device "+strings.TrimSpace(string(of)))
		}
	}
	for _, h := range l.Hosts {
		if h.Holder.alive() {
			left = append(left, fmt.Sprintf("process %d of %s", h.Holder.ID, h.Name))
		}
	}
	argvs, _ := filepath.Glob("/proc/[0-9]*/cmdline") // as above
	for _, file := range argvs {
		if argv, err := os.ReadFile(file); err == nil && strings.Contains(string(argv), filepath.Join(l.Dir, "mux")+"/") {
			left = append(left, "process "+filepath.Base(filepath.Dir(file))+", a connection")
		}
	}
	if l.Watcher.alive() {
		left = append(left, fmt.Sprintf("process %d, the watcher", l.Watcher.ID))
	}
	return sorted(left)
}

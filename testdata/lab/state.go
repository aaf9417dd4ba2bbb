package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// labsDir holds a folder for each lab that is up.
func labsDir(cache string) string { return filepath.Join(cache, "labs") }

func (l *Lab) cache() string { return filepath.Dir(filepath.Dir(l.Dir)) }

// locked runs next while no other process adds or removes a lab. The folder of labs is
// there while it runs, and stays as long as there is a lab.
func locked(ctx context.Context, cache string, next func() error) error {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(cache, ".labs.lock"))
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return fmt.Errorf("wait for another lab: %w", err)
	}
	defer lock.Unlock() //nolint:errcheck // nothing is left to do
	if err := attach(ctx, cache); err != nil {
		return fmt.Errorf("prepare the folder of labs: %w", err)
	}
	err := next()
	if all, lerr := list(cache); lerr == nil && len(all) == 0 {
		err = errors.Join(err, detach(cache))
	}
	return err
}

// reserve makes the folder of a new lab, with an index that no other lab has, nor a
// checkpoint that was kept.
func reserve(ctx context.Context, o Options) (*Lab, error) {
	l := &Lab{Name: o.Name, Dir: filepath.Join(labsDir(o.Cache), o.Name), DiskSize: o.DiskSize, log: o.Log}
	return l, locked(ctx, o.Cache, func() error {
		taken, err := l.free(o.Cache)
		if err != nil {
			return err
		}
		kept, err := keptIn(o.Cache)
		if err != nil {
			return err
		}
		for _, k := range kept {
			taken[k.Lab.Index] = k.Lab.Name
		}
		for l.Index = 1; taken[l.Index] != ""; l.Index++ {
		}
		return l.settle(o.Cache)
	})
}

// free gives the indexes that labs have, with their names. It is an error if one of
// them is called as l is.
func (l *Lab) free(cache string) (map[int]string, error) {
	all, err := list(cache)
	if err != nil {
		return nil, err
	}
	taken := map[int]string{}
	for _, other := range all {
		if other.Name == l.Name {
			return nil, fmt.Errorf("lab %s is up already; take it down first, or give this one another name", l.Name)
		}
		taken[other.Index] = other.Name
	}
	return taken, nil
}

// settle makes the lab's folder. The first lab keeps the machine's settings.
func (l *Lab) settle(cache string) error {
	all, err := list(cache)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		if err := keepSettings(cache); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(l.Dir, 0o755); err != nil {
		return err
	}
	return l.save()
}

// List gives every lab that is up, by name.
func List(cache string) ([]*Lab, error) {
	if err := find(cache); err != nil {
		return nil, err
	}
	return list(cache)
}

// find mounts the folder of labs where it is not, and holds labs: this machine has
// started again since they were up, and nothing runs of them.
func find(cache string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	if _, err := os.Stat(labsFile(cache)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if is, err := mounted(labsDir(cache)); err == nil && is {
		return nil
	}
	return locked(context.Background(), cache, func() error { return nil })
}

func list(cache string) ([]*Lab, error) {
	entries, err := os.ReadDir(labsDir(cache))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var all []*Lab
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		l, err := open(cache, e.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// release removes the lab's folder and, after the last lab, puts the machine's settings back.
func (l *Lab) release() error {
	return locked(context.Background(), l.cache(), func() error {
		if err := os.RemoveAll(l.Dir); err != nil {
			return err
		}
		left, err := list(l.cache())
		if err != nil || len(left) > 0 {
			return err
		}
		return restoreSettings(l.cache(), l.log)
	})
}

// machineWide are kernel settings that hosts may write and that no namespace
// keeps to itself.
var machineWide = strings.Fields(`
	fs.aio-max-nr fs.file-max fs.inotify.max_queued_events fs.inotify.max_user_instances fs.inotify.max_user_watches
	fs.nr_open fs.protected_fifos fs.protected_hardlinks fs.protected_regular fs.protected_symlinks fs.suid_dumpable
	kernel.core_pattern kernel.core_uses_pid kernel.hung_task_timeout_secs kernel.keys.root_maxbytes
	kernel.keys.root_maxkeys kernel.kptr_restrict kernel.panic kernel.panic_on_oops kernel.pid_max kernel.printk
	kernel.softlockup_panic kernel.sysrq kernel.threads-max
	net.core.netdev_max_backlog net.core.rmem_max net.core.wmem_max net.ipv4.tcp_mem net.netfilter.nf_conntrack_max
	vm.dirty_background_ratio vm.dirty_ratio vm.max_map_count vm.min_free_kbytes vm.overcommit_memory vm.panic_on_oom
	vm.swappiness vm.vfs_cache_pressure`)

// wanted are the settings that labs need of the machine. The connection
// tracker's size cannot be written from a host; watches and keys are one
// account's over all hosts.
var wanted = map[string]string{
	"net.netfilter.nf_conntrack_max": strconv.Itoa(max(131072, 32768*runtime.NumCPU())), // what kube-proxy asks for
	"fs.inotify.max_user_instances":  "8192",
	"fs.inotify.max_user_watches":    "1048576",
	"kernel.keys.root_maxkeys":       "1000000",
	"kernel.keys.root_maxbytes":      "25000000",
}

func settingsFile(cache string) string { return filepath.Join(labsDir(cache), "settings") }

// keepSettings writes the machine's settings down, unless a lab that died left
// its note, and makes those that labs need.
func keepSettings(cache string) error {
	if _, err := os.Stat(settingsFile(cache)); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(settingsFile(cache), []byte(strings.Join(settings(), "\n")), 0o600); err != nil {
			return err
		}
	}
	for key, value := range wanted {
		if err := set(key, value); err != nil {
			return err
		}
	}
	return nil
}

// restoreSettings puts back what keepSettings wrote down.
func restoreSettings(cache string, log *slog.Logger) error {
	raw, err := os.ReadFile(settingsFile(cache))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := putBack(strings.Split(string(raw), "\n"), log); err != nil {
		return err
	}
	return os.Remove(settingsFile(cache))
}

// settings lists those that are the machine's, as they are now.
func settings() (list []string) {
	for _, key := range machineWide {
		if value, ok := setting(key); ok {
			list = append(list, key+"="+value)
		}
	}
	return list
}

// putBack makes the machine's settings what settings said.
func putBack(list []string, log *slog.Logger) error {
	for _, line := range list {
		key, value, _ := strings.Cut(line, "=")
		if now, ok := setting(key); !ok || now == value {
			continue
		}
		if err := set(key, value); err != nil {
			return err
		}
		log.Debug("put a setting of the machine back", "setting", key, "value", value)
	}
	return nil
}

// setting reads a kernel setting; false where this kernel has none of the name.
func setting(key string) (string, bool) {
	raw, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(key, ".", "/"))
	return strings.Join(strings.Fields(string(raw)), " "), err == nil
}

func set(key, value string) error {
	out, err := exec.Command("sysctl", "-q", "-w", key+"="+value).CombinedOutput()
	if err != nil {
		return fmt.Errorf("set %s: %s (%w)", key, strings.TrimSpace(string(out)), err)
	}
	return nil
}

func sorted(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

package lab

import (
	"bytes"
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

// locked runs next while no other process adds or removes a lab.
func locked(ctx context.Context, cache string, next func() error) error {
	if err := os.MkdirAll(labsDir(cache), 0o755); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(labsDir(cache), ".lock"))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return fmt.Errorf("wait for another lab: %w", err)
	}
	defer lock.Unlock() //nolint:errcheck // nothing is left to do
	return next()
}

// reserve makes the lab's folder, with addresses that no other lab has.
func reserve(ctx context.Context, o Options) (*Lab, error) {
	l := &Lab{Name: o.Name, Dir: filepath.Join(labsDir(o.Cache), o.Name), log: o.Log}
	return l, locked(ctx, o.Cache, func() error {
		if _, err := os.Stat(l.Dir); err == nil {
			return fmt.Errorf("lab %s is up already; take it down first, or give this one another name", o.Name)
		}
		taken, err := List(o.Cache)
		if err != nil {
			return err
		}
		for l.Index = 1; slices.ContainsFunc(taken, func(x *Lab) bool { return x.Index == l.Index }); l.Index++ {
		}
		if len(taken) == 0 {
			if err := keepSettings(o.Cache); err != nil {
				return err
			}
		}
		if err := os.MkdirAll(l.Dir, 0o755); err != nil {
			return err
		}
		return l.save()
	})
}

// List gives every lab that is up, by name.
func List(cache string) ([]*Lab, error) {
	entries, err := os.ReadDir(labsDir(cache))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var all []*Lab
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		l, err := Open(cache, e.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// release removes the lab's folder and, after the last lab, puts the machine's settings back.
func (l *Lab) release() error {
	cache := filepath.Dir(filepath.Dir(l.Dir))
	return locked(context.Background(), cache, func() error {
		if err := os.RemoveAll(l.Dir); err != nil {
			return err
		}
		left, err := List(cache)
		if err != nil || len(left) > 0 {
			return err
		}
		return restoreSettings(cache, l.log)
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
		var b bytes.Buffer
		for _, key := range machineWide {
			if value, ok := setting(key); ok {
				fmt.Fprintf(&b, "%s=%s\n", key, value)
			}
		}
		if err := os.WriteFile(settingsFile(cache), b.Bytes(), 0o600); err != nil {
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
	for line := range strings.Lines(string(raw)) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "=")
		if now, ok := setting(key); !ok || now == value {
			continue
		}
		if err := set(key, value); err != nil {
			return err
		}
		log.Debug("put a setting of the machine back", "setting", key, "value", value)
	}
	return os.Remove(settingsFile(cache))
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

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// machineLock is of this machine, whichever cache a lab has: labs share kernel settings
// that no namespace keeps to itself.
const machineLock = "/run/lock/kubexm-lab"

// hold gives a lab the machine: beside others, or alone. It waits as long as others
// have it in a way that does not go with that. A lab that outlives its process, as one
// of `lab up`, holds nothing any more: nobody would ever let it go.
func hold(ctx context.Context, file string, o *Options) (free func(), err error) {
	if o.held {
		return func() {}, nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	lock := flock.New(file)
	try, wait := lock.TryRLock, lock.TryRLockContext
	if o.Alone {
		try, wait = lock.TryLock, lock.TryLockContext
	}
	got, err := try()
	if err == nil && !got {
		o.Log.InfoContext(ctx, "waiting for the labs of other processes to go", "lab", o.Name, "alone", o.Alone, "held_by", holders(file))
		_, err = wait(ctx, 200*time.Millisecond)
	}
	if err != nil {
		return nil, fmt.Errorf("wait for the labs of other processes (%s): %w", holders(file), err)
	}
	return func() { _ = lock.Unlock() }, nil
}

// holders names the processes that have a lock on a file.
func holders(file string) string {
	var is syscall.Stat_t
	if err := syscall.Stat(file, &is); err != nil {
		return err.Error()
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return err.Error()
	}
	var all []string
	for line := range strings.Lines(string(locks)) {
		f := strings.Fields(line) // 1: FLOCK ADVISORY WRITE 700 fe:00:1234 0 EOF
		if len(f) < 6 || f[1] != "FLOCK" || !strings.HasSuffix(f[5], ":"+strconv.FormatUint(is.Ino, 10)) {
			continue
		}
		argv, _ := os.ReadFile("/proc/" + f[4] + "/cmdline")
		all = append(all, "process "+f[4]+" "+strings.Join(strings.Split(strings.Trim(string(argv), "\x00"), "\x00"), " "))
	}
	return strings.Join(sorted(all), ", ")
}

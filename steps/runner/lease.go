package runner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Lease is an exclusive claim on a host that lasts as long as its holder is alive. It is
// tied to one command on the host whose input stays open: the end of the connection ends
// the lease. If the host does not notice that end, for example after a power failure, the
// lease expires because heartbeats are missing.
type Lease struct {
	Path   string // of the file that contains the holder; absolute, below /run
	Holder string // one line for people: user, machine, start time
	// Interval is the heartbeat interval; 0 means 5 seconds.
	Interval time.Duration
	// Stale is the age of the last heartbeat after which another holder's lease has
	// expired, in whole seconds; 0 means 20 seconds.
	Stale time.Duration
}

// exitHeld means that another holder has the lease.
const exitHeld = 49

// HeldError means that another holder has the lease.
type HeldError struct{ Holder string }

func (e *HeldError) Error() string { return "held by " + e.Holder }

// Hold acquires a lease and holds it until ctx ends, which is not an error. It calls held
// after it has acquired the lease. The error is a *HeldError if another holder has the
// lease. Any other error states how the command on the host ended.
func (r *Runner) Hold(ctx context.Context, l Lease, held func()) error {
	if err := checkPath(l.Path); err != nil {
		return err
	}
	if l.Holder == "" || strings.ContainsAny(l.Holder, "\r\n") {
		return fmt.Errorf("lease holder %q is not a single line", l.Holder)
	}
	beat, stale := cmp.Or(l.Interval, 5*time.Second), cmp.Or(l.Stale, 20*time.Second)
	in, pulse := io.Pipe()
	done := make(chan struct{})
	defer close(done)
	go func() {
		t := time.NewTicker(beat)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				_ = pulse.Close() // the end of its input ends the command
				return
			case <-done:
				_ = in.Close()
				return
			case <-t.C:
			}
			if _, err := pulse.Write([]byte("\n")); err != nil {
				return
			}
		}
	}()
	// The command must end by itself, so that it can remove its files.
	ending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(5*time.Second, cancel)
	})()
	res, err := r.do(ending, connector.Cmd{
		Verb: connector.VerbLease, Argv: shell(scriptLease, l.Path, l.Holder, seconds(stale)), Sudo: true, Stdin: in, Stdout: &once{f: held},
	}, exitHeld)
	switch {
	case err == nil && res.Exit == exitHeld:
		return &HeldError{Holder: firstLine(res.Stdout)}
	case ctx.Err() != nil:
		return nil
	case err == nil:
		return errors.New("the lease command ended unexpectedly")
	}
	return err
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return strings.TrimSpace(string(line))
}

// once calls f when it has received the line "held".
type once struct {
	f   func()
	mu  sync.Mutex
	got []byte
}

// Write never fails.
func (o *once) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.f != nil {
		if o.got = append(o.got, p...); bytes.HasPrefix(o.got, []byte("held\n")) {
			o.f()
			o.f, o.got = nil, nil
		}
	}
	return len(p), nil
}

// scriptLease takes PATH HOLDER SECONDS. A line on standard input is a heartbeat. A holder
// of the same name has lost its connection and may acquire the lease again. The lock file
// is removed at the end: a process that locked a removed file tries again. Heartbeats use
// the time since boot, because a run may set the clock. A holder without a heartbeat has
// just started.
const scriptLease = `set -u; umask 077
mkdir -p -- "${1%/*}"
up() { IFS=' .' read -r now _ </proc/uptime; }
while :; do
	exec 9>>"$1.lock"
	if ! flock -n 9; then
		who=$(sed -n 1p -- "$1" 2>/dev/null)
		up; beat=$(cat -- "$1.beat" 2>/dev/null); age=$((now - ${beat:-now}))
		if [ "$who" != "$2" ] && [ "$age" -le "$3" ]; then printf '%s\n' "${who:-a run that has just begun}"; exit 49; fi
		kill -9 "$(sed -n 2p -- "$1")" 2>/dev/null
		flock -w 5 9 || { printf '%s\n' "$who"; exit 49; }
	fi
	[ "$(stat -Lc %i /proc/self/fd/9)" != "$(stat -c %i -- "$1.lock" 2>/dev/null)" ] || break
done
up; echo "$now" >"$1.beat"
printf '%s\n%s\n' "$2" "$$" >"$1"
echo held
while IFS= read -r _; do up; echo "$now" >"$1.beat"; done
rm -f -- "$1" "$1.beat" "$1.lock"`

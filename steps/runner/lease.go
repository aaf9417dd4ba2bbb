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

// Lease is a claim on a host that lasts as long as who holds it is alive. It hangs
// on one command there whose input stays open: the end of the connection ends it,
// and where that is not noticed, as after a loss of power, its silence does.
type Lease struct {
	Path   string // of the file that tells who holds it; absolute, below /run
	Holder string // one line for people: who, on which machine, since when
	// Beat is the time between two signs of life; 0 means 5 seconds.
	Beat time.Duration
	// Stale is how old another's last sign of life has to be for its claim to be
	// void, in whole seconds; 0 means 20.
	Stale time.Duration
}

// exitHeld says that somebody else has the lease.
const exitHeld = 49

// HeldError says who has a lease.
type HeldError struct{ Holder string }

func (e *HeldError) Error() string { return "held by " + e.Holder }

// Hold takes a lease and keeps it until ctx ends, which is no error. It calls held
// when it has it. The error is a *HeldError where another has it, and else says how
// the command on the host ended.
func (r *Runner) Hold(ctx context.Context, l Lease, held func()) error {
	if err := checkPath(l.Path); err != nil {
		return err
	}
	if l.Holder == "" || strings.ContainsAny(l.Holder, "\r\n") {
		return fmt.Errorf("%q is not one line about who holds a lease", l.Holder)
	}
	beat, stale := cmp.Or(l.Beat, 5*time.Second), cmp.Or(l.Stale, 20*time.Second)
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
	// The command is to end by itself: then nothing is left of it.
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
		return errors.New("the lease ended by itself")
	}
	return err
}

func firstLine(b []byte) string {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return strings.TrimSpace(string(line))
}

// once calls f when the line that says so has come.
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

// PATH HOLDER SECONDS; a line on the standard input is a sign of life. Who holds it
// already by that name has lost its connection, and may have it again. The file of
// the lock goes away at the end: who gets hold of one that has gone tries again.
// Signs of life are by the time since the boot: a clock is set while runs are at work,
// and one that jumps makes nobody dead. Who has left no sign yet has just begun.
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

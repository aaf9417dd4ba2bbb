package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector/local"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/testdata/fair"
)

// TestLeaseOfTheDead: after a power failure the holder sends no heartbeats, and its command
// on the host does not end. The next holder waits until the lease has expired, and not
// longer.
func TestLeaseOfTheDead(t *testing.T) {
	r := runner.New(local.New(local.Config{}), runner.Options{AsLogin: true})
	path := filepath.Join(t.TempDir(), "demo.run")
	// Beats come once an hour: after the first moment it is as one that died.
	dead, bury := context.WithCancel(t.Context())
	defer bury()
	held, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- r.Hold(dead, runner.Lease{Path: path, Holder: "the dead", Interval: time.Hour}, func() { close(held) })
	}()
	<-held
	next := runner.Lease{Path: path, Holder: "the next", Stale: time.Second}
	var taken *runner.HeldError
	if err := r.Hold(t.Context(), next, func() {}); !errors.As(err, &taken) || taken.Holder != "the dead" {
		t.Fatalf("the living was not asked for: %v", err)
	}
	age(t, path, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	if err := r.Hold(ctx, next, cancel); err != nil {
		t.Fatalf("the dead one still stands in the way: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the old holder was not told that it lost its lease")
	}
}

// age makes the last heartbeat of a lease older by the given time.
func age(t *testing.T, path string, by time.Duration) {
	t.Helper()
	text, err := os.ReadFile(path + ".beat")
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".beat", fmt.Appendln(nil, at-int(by.Seconds())), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLeaseWhileTheClockJumps: if the clock is set during a run, for example by a time
// service, a lease neither expires early nor lasts forever. The test changes file times,
// which has the same effect as a change of the clock.
func TestLeaseWhileTheClockJumps(t *testing.T) {
	r := runner.New(local.New(local.Config{}), runner.Options{AsLogin: true})
	for name, jump := range map[string]time.Duration{"an hour ahead": time.Hour, "an hour back": -time.Hour, "ten years ahead": 87600 * time.Hour, "ten years back": -87600 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "demo.run")
			ctx, end := context.WithCancel(t.Context())
			defer end()
			held, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- r.Hold(ctx, runner.Lease{Path: path, Holder: "the first", Interval: time.Hour}, func() { close(held) })
			}()
			<-held
			files, err := filepath.Glob(path + "*")
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			for _, f := range files {
				if err := os.Chtimes(f, time.Time{}, time.Now().Add(-jump)); err != nil {
					t.Fatal(err)
				}
			}
			next := runner.Lease{Path: path, Holder: "the next", Stale: 20 * time.Second}
			var taken *runner.HeldError
			short, enough := context.WithTimeout(t.Context(), time.Minute)
			defer enough()
			if err := r.Hold(short, next, func() {}); !errors.As(err, &taken) || taken.Holder != "the first" {
				t.Fatalf("the living lost its lease: %v", err)
			}
			age(t, path, time.Minute) // it has died since
			mine, done := context.WithCancel(t.Context())
			if err := r.Hold(mine, next, done); err != nil {
				t.Fatalf("the dead one still stands in the way: %v", err)
			}
			if err := <-ended; err == nil {
				t.Error("the old holder was not told that it lost its lease")
			}
			if left, err := filepath.Glob(path + "*"); len(left) > 0 || err != nil {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// TestLeaseOfTheKilled: after the command of a lease is killed, the next holder acquires it
// immediately.
func TestLeaseOfTheKilled(t *testing.T) {
	r := runner.New(local.New(local.Config{}), runner.Options{AsLogin: true})
	path := filepath.Join(t.TempDir(), "demo.run")
	held, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- r.Hold(t.Context(), runner.Lease{Path: path, Holder: "the killed"}, func() { close(held) })
	}()
	<-held
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", `kill -9 "$(sed -n 2p "$1")"`, "sh", path).CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	if err := <-ended; err == nil {
		t.Error("a lease that was lost is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	clock := fair.Start()
	if err := r.Hold(ctx, runner.Lease{Path: path, Holder: "the next"}, cancel); err != nil {
		t.Errorf("after %s: %v", clock.Took(), err)
	}
	clock.Within(t, 5*time.Second)
}

package runner_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector/local"
	"github.com/mensylisir/kubexm/steps/runner"
)

// TestLeaseOfTheDead: a holder whose machine lost its power says nothing more, and
// its command on the host does not end. The next one waits for its silence to be
// long enough, and no longer.
func TestLeaseOfTheDead(t *testing.T) {
	r := runner.New(local.New(local.Config{}), runner.Options{AsLogin: true})
	path := filepath.Join(t.TempDir(), "demo.run")
	// Beats come once an hour: after the first moment it is as one that died.
	dead, bury := context.WithCancel(t.Context())
	defer bury()
	held, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- r.Hold(dead, runner.Lease{Path: path, Holder: "the dead", Beat: time.Hour}, func() { close(held) })
	}()
	<-held
	next := runner.Lease{Path: path, Holder: "the next", Stale: time.Second}
	var taken *runner.HeldError
	if err := r.Hold(t.Context(), next, func() {}); !errors.As(err, &taken) || taken.Holder != "the dead" {
		t.Fatalf("the living was not asked for: %v", err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := r.Hold(ctx, next, cancel); err != nil {
		t.Fatalf("the dead one still stands in the way: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("the old holder was not told that it lost its lease")
	}
}

// TestLeaseOfTheKilled: what holds a lease is killed without a word, and the next
// one has it at once.
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
	began := time.Now()
	if err := r.Hold(ctx, runner.Lease{Path: path, Holder: "the next"}, cancel); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

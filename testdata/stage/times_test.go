package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestTimes: two clones have the same times, whatever their history, and what is
// modified keeps its own.
func TestTimes(t *testing.T) {
	origin := t.TempDir()
	in := func(dir string, args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	in(origin, "init", "-q", "-b", "main")
	if err := os.MkdirAll(filepath.Join(origin, "sub/deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "sub/ü two", "sub/deep/three"} {
		write(t, filepath.Join(origin, name), name)
	}
	in(origin, "add", "-A")
	in(origin, "commit", "-qm", "first")
	write(t, filepath.Join(origin, "one"), "ONE")
	in(origin, "commit", "-qam", "second")

	clone := func(args ...string) string {
		dir := filepath.Join(t.TempDir(), "clone")
		in(".", append(append([]string{"clone", "-q"}, args...), "file://"+origin, dir)...)
		return dir
	}
	whole, shallow, modified := clone(), clone("--depth=1"), clone()
	write(t, filepath.Join(modified, "sub/ü two"), "other")
	for _, dir := range []string{whole, shallow, modified} {
		if err := Times(t.Context(), filepath.Join(dir, "sub")); err != nil {
			t.Fatal(err)
		}
	}
	at := func(dir, name string) time.Time {
		t.Helper()
		i, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return i.ModTime()
	}
	seen := map[time.Time]string{}
	for _, name := range []string{"one", "sub", "sub/ü two", "sub/deep", "sub/deep/three"} {
		if !at(whole, name).Equal(at(shallow, name)) {
			t.Errorf("%s: %v in one clone and %v in the other", name, at(whole, name), at(shallow, name))
		}
		if other := seen[at(whole, name)]; other != "" {
			t.Errorf("%s has the time of %s", name, other)
		}
		seen[at(whole, name)] = name
	}
	for name, same := range map[string]bool{"one": true, "sub": false, "sub/ü two": false, "sub/deep": true} {
		if got := at(whole, name).Equal(at(modified, name)); got != same {
			t.Errorf("%s beside a modified file: the same time: %v, want %v", name, got, same)
		}
	}
	write(t, filepath.Join(origin, "one"), "EIN")
	in(origin, "commit", "-qam", "third")
	later := clone()
	if err := Times(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if at(later, "one").Equal(at(whole, "one")) || !at(later, "sub/deep/three").Equal(at(whole, "sub/deep/three")) {
		t.Error("a new content has its old time, or an old content a new one")
	}
}

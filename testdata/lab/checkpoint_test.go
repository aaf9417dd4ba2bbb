package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLabCheckpoint takes hosts and folders back to a moment: while they run, with one
// that is off, and as another lab of the same name and addresses.
func TestLabCheckpoint(t *testing.T) {
	l := Start(t, 3)
	ctx := t.Context()
	on := func(i int, script string) string {
		t.Helper()
		return run(t, l.SSH(ctx, &l.Hosts[i], RootUser, script))
	}
	folder := t.TempDir()
	own, err := l.Folder("site")
	if err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(folder, ".kubexm", "journal"), "one\n")
	write(filepath.Join(own, "config.yaml"), "as it was\n")
	for i := range l.Hosts {
		on(i, "echo here >/root/mark") // not synced: the checkpoint sees to that
	}
	begun := time.Now()
	if err := l.Checkpoint(ctx, "ready", folder, own); err != nil {
		t.Fatal(err)
	}
	t.Logf("a checkpoint of %d hosts took %s", len(l.Hosts), time.Since(begun).Round(time.Millisecond))

	// Everything changes, what is the machine's too, and one host is off.
	panics, _ := setting("kernel.panic")
	on(0, "sysctl -w kernel.panic=12")
	for i := range l.Hosts {
		on(i, "echo other >/root/mark; echo new >/root/new; sync; dd if=/dev/zero of=/root/big bs=1M count=50 2>&1")
	}
	if err := l.Cut(&l.Hosts[1]); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(folder, ".kubexm", "journal"), "one\ntwo\n")
	write(filepath.Join(folder, "made", "since"), "")
	write(filepath.Join(own, "config.yaml"), "changed\n")

	begun = time.Now()
	if err := l.Restore(ctx, "ready"); err != nil {
		t.Fatal(err)
	}
	t.Logf("a restore of %d hosts took %s", len(l.Hosts), time.Since(begun).Round(time.Millisecond))
	asThen := func() {
		t.Helper()
		for i := range l.Hosts {
			if got := on(i, "cat /root/mark; ls /root"); got != "here\nmark" {
				t.Errorf("h%d: %q", i+1, got)
			}
		}
		for path, want := range map[string]string{filepath.Join(folder, ".kubexm", "journal"): "one\n", filepath.Join(own, "config.yaml"): "as it was\n"} {
			if got, err := os.ReadFile(path); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v", path, got, err)
			}
		}
		if _, err := os.Stat(filepath.Join(folder, "made")); err == nil {
			t.Error("a folder that was made since is there")
		}
	}
	asThen()
	if now, _ := setting("kernel.panic"); now != panics {
		t.Errorf("kernel.panic is %s, and was %s", now, panics)
	}

	if err := l.Restore(ctx, "nothing"); err == nil || !strings.Contains(err.Error(), `no checkpoint "nothing"`) {
		t.Errorf("a checkpoint that is not there: %v", err)
	}
}

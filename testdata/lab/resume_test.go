package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestLabResume brings a lab up from a checkpoint that was kept, after it was down.
func TestLabResume(t *testing.T) {
	l := Start(t, 2)
	ctx, cache := t.Context(), l.cache()
	t.Cleanup(func() { _ = Forget(t.Context(), cache, l.Name, "kept") }) // where the test ends early
	site, err := l.Folder("site")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(site, "config.yaml")
	if err := os.WriteFile(file, []byte(l.Config("${LAB_NET}.11 ${LAB_KEY}")), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, l.SSH(ctx, &l.Hosts[1], RootUser, "echo h2 >/root/mark"))
	if err := l.Checkpoint(ctx, "kept", site); err != nil {
		t.Fatal(err)
	}
	if err := l.Checkpoint(ctx, "not", site); err != nil {
		t.Fatal(err)
	}
	if err := l.Keep(ctx, "kept"); err != nil {
		t.Fatal(err)
	}
	if err := l.Restore(ctx, "kept"); err != nil {
		t.Errorf("a kept one, while the lab is up: %v", err)
	}
	if _, err := Resume(ctx, Options{Name: l.Name, held: true}, "kept"); err == nil || !strings.Contains(err.Error(), "is up already") {
		t.Errorf("a lab that is up: %v", err)
	}
	l.checkEgress(t)
	l.AllowEgress() // nobody watches any more when the test ends
	if err := l.Down(); err != nil {
		t.Fatal(err)
	}
	if left := l.Leftovers(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}

	// Another lab meanwhile leaves it its addresses.
	other, err := Up(ctx, Options{Name: "tbeside", Hosts: 1, held: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Down() })
	if other.Subnet() == l.Subnet() {
		t.Errorf("another lab has %s, which a checkpoint has", l.Subnet())
	}
	if _, err := Resume(ctx, Options{Name: l.Name, held: true}, "not"); err == nil || !strings.Contains(err.Error(), `no checkpoint "not"`) {
		t.Errorf("one that was not kept: %v", err)
	}
	again, err := Resume(ctx, Options{Name: l.Name, held: true}, "kept")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = again.Down() })
	if again.Hosts[1].Address != l.Hosts[1].Address {
		t.Errorf("h2 has %s, and had %s", again.Hosts[1].Address, l.Hosts[1].Address)
	}
	if got := run(t, again.SSH(ctx, &again.Hosts[1], RootUser, "cat /root/mark")); got != "h2" {
		t.Errorf("the disk of h2: %q", got)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != again.Config("${LAB_NET}.11 ${LAB_KEY}") {
		t.Errorf("%s: %q, %v", file, got, err)
	}
	again.checkEgress(t)

	named := func() []string {
		all, err := Checkpoints(ctx, cache)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range all {
			if s.Lab.Name == l.Name {
				names = append(names, fmt.Sprintf("%s %v %v", s.Name, s.Kept, s.Size > 100<<20))
			}
		}
		return names
	}
	if got := named(); !slices.Equal(got, []string{"kept true true"}) {
		t.Errorf("there are %q", got)
	}
	if err := again.Down(); err != nil {
		t.Fatal(err)
	}
	if err := Forget(ctx, cache, l.Name, "kept"); err != nil {
		t.Fatal(err)
	}
	if err := Forget(ctx, cache, l.Name, "kept"); err == nil || len(named()) > 0 {
		t.Errorf("forgotten twice: %v; there are %q", err, named())
	}
}

// TestResumeRefuses has no lab: what is refused is refused before one is begun.
func TestResumeRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(s *Saved, other *Lab)
		want   string
	}{
		{"another lab has its addresses", func(s *Saved, other *Lab) { other.Index = s.Lab.Index }, "lab other has the addresses of checkpoint ready of lab mine, 10.99.7.0/24"},
		{"the lab is up", func(_ *Saved, other *Lab) { other.Name = "mine" }, "lab mine is up already"},
		{"it lay elsewhere", func(s *Saved, _ *Lab) { s.Lab.Dir = "/elsewhere/labs/mine" }, "/elsewhere/labs/mine"},
		{"another kernel", func(s *Saved, _ *Lab) { s.Kernel = "2.6.32" }, "kernel 2.6.32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := t.TempDir()
			s := &Saved{Name: "ready", Kernel: kernel(), Lab: &Lab{Name: "mine", Index: 7, Dir: filepath.Join(labsDir(cache), "mine")}}
			other := &Lab{Name: "other", Index: 8}
			c.change(s, other)
			raw, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			dir := keptDir(cache, "mine", "ready")
			other.Dir = filepath.Join(labsDir(cache), other.Name)
			for _, d := range []string{dir, other.Dir} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := other.save(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "checkpoint.json"), raw, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err = reserveAgain(Options{Name: "mine", Cache: cache, Log: slog.New(slog.DiscardHandler)}, "ready")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestMayBeSaved(t *testing.T) {
	cache, site := t.TempDir(), t.TempDir()
	l := &Lab{Name: "mine", Dir: filepath.Join(labsDir(cache), "mine")}
	own, err := l.Folder("site")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(site, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, may := range map[string]bool{
		site: true, own: true, l.Dir: false, cache: false, labsDir(cache): false, "/": false, file: false, filepath.Join(site, "none"): false,
	} {
		if _, err := l.mayBeSaved(path); may != (err == nil) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// frozenLab has TestFreezer freeze a lab and wait to be killed.
const frozenLab = "KUBEXM_FROZEN_LAB"

func TestFreezer(t *testing.T) {
	dir := os.Getenv(frozenLab)
	if dir == "" {
		t.Skip("TestLabThaws runs it")
	}
	l, err := open(filepath.Dir(filepath.Dir(dir)), filepath.Base(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := freeze(t.Context(), []*Host{&l.Hosts[0]}); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(os.Stdout, "\nfrozen")
	time.Sleep(time.Minute)
}

// TestLabThaws kills a process that has frozen a host: the host goes on.
func TestLabThaws(t *testing.T) {
	l := Start(t, 1)
	ctx := t.Context()
	run(t, l.SSH(ctx, &l.Hosts[0], RootUser, "true")) // a login writes, so the connection comes first
	freezer := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestFreezer$")
	freezer.Env = append(os.Environ(), frozenLab+"="+l.Dir)
	out, err := freezer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := freezer.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); ; {
		if !lines.Scan() {
			t.Fatal("it ended without a word")
		}
		if lines.Text() == "frozen" {
			break
		}
	}
	written := make(chan error, 1)
	go func() { written <- l.SSH(ctx, &l.Hosts[0], RootUser, "echo x >/root/x").Run() }()
	select {
	case err := <-written:
		t.Errorf("a frozen host wrote: %v", err)
	case <-time.After(time.Second):
	}
	if err := freezer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = freezer.Wait() // it was killed
	select {
	case err := <-written:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the host is still frozen")
	}
	// A disk that stays as it is for ever could not be taken away either.
	if err := l.Checkpoint(ctx, "after"); err != nil {
		t.Error(err)
	}
}

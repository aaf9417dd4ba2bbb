package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal gives a pseudo terminal of a size, and what was written to it once closed.
func openTerminal(t *testing.T, width, height uint16) (tty *os.File, written func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo terminals here: ", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
	if errno != 0 {
		t.Fatal(errno)
	}
	tty = os.NewFile(fd, "tty")
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, _ = io.Copy(&out, master) // ends with an error once the other side is closed
	}()
	return tty, func() string {
		_ = tty.Close()
		<-over
		_ = master.Close()
		return out.String()
	}
}

// TestDisplay: what long work looks like is chosen by --progress, else by what the
// terminal can do; colour by --color, else NO_COLOR.
func TestDisplay(t *testing.T) {
	for name, c := range map[string]struct {
		env           []string
		args          string
		width, height uint16
		live, color   bool
	}{
		"terminal":           {nil, "", 100, 30, true, true},
		"no colour":          {[]string{"NO_COLOR=1"}, "", 100, 30, true, false},
		"colour asked":       {[]string{"NO_COLOR=1"}, "--color always", 100, 30, true, true},
		"colour refused":     {nil, "--color never", 100, 30, true, false},
		"dumb":               {[]string{"TERM=dumb"}, "", 100, 30, false, false},
		"unknown size":       {nil, "", 0, 0, false, true},
		"plain":              {nil, "--plain", 100, 30, false, true},
		"progress plain":     {nil, "--progress plain", 100, 30, false, true},
		"progress none":      {nil, "--progress none", 100, 30, false, true},
		"variable":           {[]string{"KUBEXM_PROGRESS=plain"}, "", 100, 30, false, true},
		"flag over variable": {[]string{"KUBEXM_PROGRESS=plain"}, "--progress tty", 100, 30, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			tty, written := openTerminal(t, c.width, c.height)
			env := map[string]string{}
			for _, e := range c.env {
				k, v, _ := strings.Cut(e, "=")
				env[k] = v
			}
			var out bytes.Buffer
			a := &app{in: strings.NewReader(""), out: &out, err: tty, env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
			code := a.run(t.Context(), append([]string{"bundle", "verify", "absent.tar.zst"}, strings.Fields(c.args)...))
			live, text := a.live(), written()
			if code != exitUsage || !strings.Contains(text, "absent.tar.zst") {
				t.Fatalf("exit code %d: %q", code, text)
			}
			if live != c.live || strings.Contains(text, "\x1b[31merror:\x1b[0m") != c.color {
				t.Errorf("live %t: %q", live, text)
			}
			if c.env != nil && c.env[0] == "TERM=dumb" && strings.Contains(text, "\x1b") {
				t.Errorf("escapes: %q", text)
			}
		})
	}
}

// TestProgressWithoutATerminal: who insists on a frame where there can be none is told.
func TestProgressWithoutATerminal(t *testing.T) {
	code, _, stderr := ran(t, "bundle", "verify", "absent.tar.zst", "--progress", "tty")
	if code != exitUsage || !strings.Contains(stderr, "--progress tty: standard error is not a terminal") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	code, _, stderr = ran(t, "bundle", "verify", "absent.tar.zst", "--color", "always")
	if code != exitUsage || !strings.HasPrefix(stderr, "\x1b[31merror:\x1b[0m ") {
		t.Errorf("exit code %d: %q", code, stderr)
	}
}

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/registry/registrytest"
)

// sitting is a kubexm that a person sits before.
type sitting struct {
	master *os.File
	cmd    *exec.Cmd

	mu   sync.Mutex
	seen bytes.Buffer // everything on the screen, echo included
	done chan struct{}
}

func sitBefore(t *testing.T, dir string, args ...string) *sitting {
	t.Helper()
	master, slave := pseudoTerminal(t)
	defer slave.Close() // the process has it then
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := &sitting{master: master, done: make(chan struct{})}
	x.cmd = exec.CommandContext(t.Context(), self)
	x.cmd.Args = append([]string{"kubexm"}, args...) // the test's main goes by the name
	x.cmd.Dir, x.cmd.Env = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(x.done)
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			x.mu.Lock()
			x.seen.Write(b[:n])
			x.mu.Unlock()
			if err != nil { // nobody has the other end any more
				return
			}
		}
	}()
	return x
}

func (x *sitting) screen() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen.String()
}

// echoes reports whether the terminal shows what is typed.
func (x *sitting) echoes(t *testing.T) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(x.master.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// asked waits for a question, and until what is typed is not shown.
func (x *sitting) asked(t *testing.T, question string) {
	t.Helper()
	for range 6000 { // two minutes
		if strings.HasSuffix(x.screen(), question) && !x.echoes(t) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("not asked %q in secret:\n%s", question, x.screen())
}

func (x *sitting) types(t *testing.T, text string) {
	t.Helper()
	if _, err := x.master.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the command's end, and gives its exit code.
func (x *sitting) ended(t *testing.T) int {
	t.Helper()
	stop := time.AfterFunc(20*time.Second, func() { _ = x.cmd.Process.Kill() })
	defer stop.Stop()
	err := x.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if !x.echoes(t) {
		t.Error("the terminal shows no more what is typed")
	}
	<-x.done
	return x.cmd.ProcessState.ExitCode()
}

// TestPasswordOnTerminal: a new one is asked for twice, one that stands once, and
// nothing of it is seen.
func TestPasswordOnTerminal(t *testing.T) {
	dir := t.TempDir()
	generate := func(first, second string) (*sitting, int) {
		x := sitBefore(t, dir, "keys", "generate")
		x.asked(t, "Password for the new key: ")
		x.types(t, first+"\n")
		x.asked(t, "Repeat the password: ")
		x.types(t, second+"\n")
		code := x.ended(t)
		if strings.Contains(x.screen(), "canary") {
			t.Errorf("the password is on the screen:\n%s", x.screen())
		}
		return x, code
	}
	if x, code := generate("canary-1", "canary-2"); code != exitUsage || !strings.Contains(x.screen(), "the passwords do not match") {
		t.Errorf("two that differ: exit %d\n%s", code, x.screen())
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Fatalf("left behind: %v, %v", files, err)
	}
	if x, code := generate("canary-1", "canary-1"); code != exitDone {
		t.Fatalf("exit %d\n%s", code, x.screen())
	}
	text, err := os.ReadFile(filepath.Join(dir, "cosign.key"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sign.LoadSigner(text, []byte("canary-1")); err != nil {
		t.Error(err)
	}

	// A key that stands: once, and the archive is signed with it, or is not.
	w := registrytest.NewContent("")
	w.Binary("kubelet", "v1.32.2", []byte("a program"))
	archive, err := w.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{"canary-3\n": "(key-password)", "canary-1\n": ": signed", "canary\x03": "interrupted"} {
		x := sitBefore(t, dir, "bundle", "sign", "--key", "cosign.key", archive)
		x.asked(t, "Password for cosign.key: ")
		x.types(t, typed)
		code := x.ended(t)
		if exit := map[string]int{"(key-password)": exitUsage, "interrupted": exitInterrupted}[want]; code != exit || !strings.Contains(x.screen(), want) {
			t.Errorf("%q: exit %d, want %d\n%s", typed, code, exit, x.screen())
		}
		if strings.Contains(x.screen(), "canary") {
			t.Errorf("the password is on the screen:\n%s", x.screen())
		}
	}
}

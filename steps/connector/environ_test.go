package connector_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// TestDeafCommandOnABusyHost: a command that ignores SIGTERM gets SIGKILL, however long the host
// needs to find its processes.
func TestDeafCommandOnABusyHost(t *testing.T) {
	t.Parallel()
	grep, err := exec.LookPath("grep")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "grep"), []byte("#!/bin/sh\nsleep 0.5\nexec "+grep+" \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	pidFile := filepath.Join(dir, "pid")
	w := connector.Wire{Addr: "h1", Lingers: true, Start: func(ctx context.Context, argv []string, in io.Reader, out, errs io.Writer) (int, error) {
		cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it outlives its context, as on a host
		cmd.Env = []string{"PATH=" + dir + ":" + connector.SearchPath}
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err := <-ended:
			return cmd.ProcessState.ExitCode(), err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := w.Execute(ctx, connector.Cmd{Argv: []string{"sh", "-c", "trap '' TERM; echo $$ >" + pidFile + ".new; mv " + pidFile + ".new " + pidFile + "; while :; do sleep 0.1; done"}})
		done <- err
	}()
	var pid int
	for end := time.Now().Add(time.Minute); pid == 0; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(pidFile)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		if time.Now().After(end) {
			t.Fatal("the command does not start: ", err)
		}
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && !strings.Contains(string(text), ") Z ") {
		t.Error("the command still runs")
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}

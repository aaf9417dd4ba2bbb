package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// TestNoCores asks the kernel about a kubexm at work: it writes no core, and its
// memory belongs to nobody but root.
func TestNoCores(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "kubexm") // by this name the test program is kubexm
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "config", "validate", "-f", "-")
	in, err := cmd.StdinPipe() // it waits for its config
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // an empty config is a mistake
	defer in.Close()
	none := regexp.MustCompile(`(?m)^Max core file size +0 +0 `)
	var limits []byte
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if limits, err = os.ReadFile(fmt.Sprintf("/proc/%d/limits", cmd.Process.Pid)); err == nil && none.Match(limits) {
			break
		}
	}
	if !none.Match(limits) {
		t.Errorf("%v\n%s", err, limits)
	}
	if os.Getuid() != 0 {
		if f, err := os.Open(fmt.Sprintf("/proc/%d/mem", cmd.Process.Pid)); err == nil {
			t.Errorf("its memory can be read: %v", f.Close())
		}
	}
}

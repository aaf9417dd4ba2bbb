package steps_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/runtime/containerd"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestExplainDiskFull: the error contains the host, the file system that the step wrote
// to, its free space and the required space.
func TestExplainDiskFull(t *testing.T) {
	run := func(program, stderr string) error {
		return &runner.CmdError{Verb: connector.VerbExec, Argv: []string{program}, Exit: 1, Stderr: stderr}
	}
	mounts := func(m *conntest.Machine) { m.FreeMiB, m.Mounts = 5<<10, map[string]int{"/var/lib/containerd": 3} }
	noInodes := func(m *conntest.Machine) { m.FreeMiB, m.InodesFree = 5<<10, -1 }
	for name, c := range map[string]struct {
		err       error
		machine   func(*conntest.Machine)
		says, try string // "": it stays as it was
	}{
		"a file that is sent": {
			err:     fmt.Errorf("upload: %w", &runner.CmdError{Verb: connector.VerbPut, Argv: []string{"/var/lib/containerd", "755", "", "x", "41943030", "1", "y", "10", "2"}, Exit: 1, Stderr: "dd: error writing '.x.kubexm-new': No space left on device\n"}),
			machine: mounts,
			says:    "No space left on device: /var/lib/containerd of node1 has 3 MiB free of 6 MiB, the file needs 40 MiB, the step uploads 1 KiB from the bundle in total",
			try:     "free space on /var/lib/containerd of node1",
		},
		"a small file elsewhere": {
			err:     &runner.CmdError{Verb: connector.VerbWrite, Argv: []string{"/etc/x", "12", "644", ""}, Exit: 1, Stderr: "cat: write error: No space left on device"},
			machine: mounts, says: "/ of node1 has 5120 MiB free of 10240 MiB, the file needs 1 KiB", try: "free space on / of node1",
		},
		"an image that is pulled": {
			err:     run("crictl", `failed to pull image "quay.example/a/b:1": failed to extract layer: write /var/lib/containerd/io.containerd.snapshotter/1/fs/bin/tool: no space left on device: unknown`),
			machine: mounts, says: "/var/lib/containerd of node1 has 3 MiB free", try: "then run the same command again",
		},
		"a path of a container": {
			err:     run("kubeadm", "wal: write /srv/store/0.tmp: no space left on device"),
			machine: func(m *conntest.Machine) { m.FreeMiB, m.Mounts = 0, map[string]int{"/srv": 100} },
			says:    "/ of node1 has 0 KiB free", try: "free space on / of node1",
		},
		"a registry that is filled": {
			err: errors.New(`PATCH "http://127.0.0.1:5000/v2/a/b/blobs/uploads/1": response status code 500: unknown: unknown error: ` +
				"write /srv/images/docker/registry/v2/repositories/a/b/_uploads/1/data: no space left on device"),
			machine: func(m *conntest.Machine) { m.FreeMiB, m.Mounts = 5<<10, map[string]int{"/srv/images": 1} },
			says:    "/srv/images of node1 has 1 MiB free of 2 MiB", try: "free space on /srv/images of node1",
		},
		"no inodes": {
			err:     &runner.CmdError{Verb: connector.VerbMkdir, Argv: []string{"/etc/y", "755", ""}, Exit: 1, Stderr: "mkdir: cannot create directory: No space left on device"},
			machine: noInodes, says: "/ of node1 has no inodes left", try: "du --inodes",
		},
		"another error":      {err: run("crictl", "connection refused")},
		"this machine's own": {err: fmt.Errorf("write /home/x: %w", syscall.ENOSPC)},
	} {
		t.Run(name, func(t *testing.T) {
			step := containerd.Binaries()
			kase := steptest.Case{}
			sim := kase.Sim(t)
			if c.machine != nil {
				sim.SetMachine(c.machine)
			}
			h := kase.NewHost(t, sim, step).ForStep(step.Meta())
			err := steps.ExplainDiskFull(t.Context(), h, c.err)
			var full *steps.DiskFullError
			if c.says == "" {
				if !errors.Is(err, c.err) || errors.As(err, &full) {
					t.Errorf("%v", err)
				}
				return
			}
			if !errors.As(err, &full) || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v\nlacks %q", err, c.says)
			}
			if advice := strings.Join(steps.Advice(err), "; "); !strings.Contains(advice, c.try) {
				t.Errorf("advice %q lacks %q", advice, c.try)
			}
			if again := steps.ExplainDiskFull(t.Context(), h, err); again.Error() != err.Error() {
				t.Errorf("explained twice: %v", again)
			}
		})
	}
}

// TestExplainDiskFullWithoutTheHost: if the host no longer answers, the error keeps its
// other details.
func TestExplainDiskFullWithoutTheHost(t *testing.T) {
	step := containerd.Binaries()
	kase := steptest.Case{}
	sim := kase.Sim(t)
	h := kase.NewHost(t, sim, step).ForStep(step.Meta())
	sim.Break(conntest.Fault{At: 1, Stay: true})
	err := steps.ExplainDiskFull(t.Context(), h, &runner.CmdError{Verb: connector.VerbPut, Argv: []string{"/", "755", "", "x", "2097152", "1"}, Exit: 1, Stderr: "No space left on device"})
	if err == nil || !strings.Contains(err.Error(), "the file needs 2 MiB") || !strings.Contains(strings.Join(steps.Advice(err), ""), "df -h") {
		t.Errorf("%v: %q", err, steps.Advice(err))
	}
}

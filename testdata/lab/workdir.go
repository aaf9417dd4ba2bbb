package lab

import (
	"context"
	"os/exec"
)

// Workdir is the host that kubexm is run from: a network namespace on the
// lab's bridge, with the machine's own files. Nothing that is run there has a
// way out of the lab.
type Workdir struct {
	Address  string
	Address6 string
	Netns    string // the name that `ip netns` knows it by
}

// Workdir gives the lab's workdir host.
func (l *Lab) Workdir() Workdir {
	return Workdir{Address: l.address(workdirNumber), Address6: l.address6(workdirNumber), Netns: l.netns(workdirSuffix)}
}

// Elsewhere gives a second host that kubexm may be run from.
func (l *Lab) Elsewhere() Workdir {
	return Workdir{Address: l.address(elsewhereNumber), Address6: l.address6(elsewhereNumber), Netns: l.netns(elsewhereSuffix)}
}

// Command is a command on the workdir host; it is ended when ctx is.
func (w Workdir) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", w.Netns, name}, args...)...)
}

// SSH is a command that runs script on h, from the workdir host; without a
// script it is a shell. The user is RootUser or SudoUser.
func (l *Lab) SSH(ctx context.Context, h *Host, user string, script ...string) *exec.Cmd {
	args := []string{
		"-i", l.Key(), "-o", "UserKnownHostsFile=" + l.KnownHosts(), "-o", "StrictHostKeyChecking=yes", "-F", "none",
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=4", "-o", "LogLevel=ERROR", user + "@" + h.Address,
	}
	return l.Workdir().Command(ctx, "ssh", append(args, script...)...)
}

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

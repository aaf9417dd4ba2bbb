package node

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// loginLimits are for who logs in and starts programs by hand: what systemd starts,
// the runtime among it, has its limits in its unit. Only the limit that a program
// may raise itself is set: pam_limits lets nobody log in where it cannot set the
// other one, as in a container, and it takes the lower where this one is above it.
// The wildcard does not mean root: see limits.conf(5).
const loginLimits = `# Written by kubexm.
* soft nofile 65536
root soft nofile 65536
`

func limits() []op.Resource {
	return []op.Resource{
		op.Dir{Path: "/etc/security/limits.d"},
		op.Text("/etc/security/limits.d/90-kubexm.conf", func(context.Context, *steps.Host) ([]byte, error) { return []byte(loginLimits), nil }),
	}
}

// RaiseLimits lets who logs in open more files than the 1024 of a plain host.
func RaiseLimits() steps.Step { return op.Ensure("node.raise-limits", limits()) }

// RestoreLimits is its inverse.
func RestoreLimits() steps.Step { return op.Remove("node.restore-limits", limits()) }

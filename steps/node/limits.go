package node

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// loginLimits are for who logs in and starts programs by hand: what systemd starts,
// the runtime among it, has its limits in its unit. systemd itself allows 524288
// open files (systemd-system.conf(5), DefaultLimitNOFILE=); a number above the
// kernel's fs.nr_open would let nobody log in any more. The wildcard does not mean
// root: see limits.conf(5).
const loginLimits = `# Written by kubexm.
* soft nofile 65536
* hard nofile 524288
root soft nofile 65536
root hard nofile 524288
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

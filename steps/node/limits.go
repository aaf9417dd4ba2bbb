package node

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// loginLimits applies to login sessions; services, such as the container runtime, have
// limits in their units. It sets only the soft limit: if pam_limits cannot set a hard limit,
// as in a container, it rejects the login. It lowers a soft limit above the hard one. The
// wildcard does not include root: see limits.conf(5).
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

// RaiseLimits raises the limit of open files for login sessions from the usual 1024.
func RaiseLimits() steps.Step { return op.Ensure("node.raise-limits", limits()) }

// RestoreLimits removes kubexm's limit of open files.
func RestoreLimits() steps.Step { return op.Remove("node.restore-limits", limits()) }

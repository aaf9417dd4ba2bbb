package node

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// hostname is the name in the config: now, and after a boot.
func hostname(h *steps.Host) []op.Resource {
	name := h.Name
	return []op.Resource{
		op.Hostname{Name: name},
		op.Text("/etc/hostname", func(context.Context, *steps.Host) ([]byte, error) { return []byte(name + "\n"), nil }),
	}
}

// SetHostname gives the host the name that it has in the config. The name is in
// /etc/hosts by then: sudo looks it up, and waits for name servers otherwise.
func SetHostname() steps.Step { return op.EnsureOn("node.update-hostname", hostname) }

// RestoreHostname is its inverse.
func RestoreHostname() steps.Step { return op.RemoveOn("node.restore-hostname", hostname) }

package node

import (
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

func selinux() []op.Resource { return []op.Resource{op.Permissive{}, op.PermissiveAtBoot()} }

// DisableSELinux has SELinux forbid nothing, now and after a boot. It stays in the
// kernel and goes on labelling files, so that enforcing can come back.
func DisableSELinux() steps.Step { return op.Ensure("node.disable-selinux", selinux()) }

// RestoreSELinux is its inverse.
func RestoreSELinux() steps.Step { return op.Remove("node.restore-selinux", selinux()) }

package node

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

func selinux() []op.Resource { return []op.Resource{Permissive{}, PermissiveAtBoot()} }

// DisableSELinux sets SELinux to permissive, immediately and at boot. It remains loaded and
// labels files, so that enforcing mode can be restored.
func DisableSELinux() steps.Step { return op.Ensure("node.disable-selinux", selinux()) }

// RestoreSELinux restores the earlier mode of SELinux, immediately and at boot.
func RestoreSELinux() steps.Step { return op.Remove("node.restore-selinux", selinux()) }

// Permissive is SELinux in permissive mode in the running kernel. PermissiveAtBoot sets the
// mode at boot. A kernel without SELinux is not changed.
type Permissive struct{ op.NoNeeds }

func (Permissive) String() string { return "SELinux permissive" }

// Want sets permissive mode.
func (p Permissive) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	enforcing, err := h.SELinux(ctx)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !enforcing {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	first := false
	return &op.Change{
		What: "set SELinux to permissive",
		Apply: func(ctx context.Context, h *steps.Host) error {
			var err error
			if first, err = op.RememberFirst(ctx, h, p, op.Record{Existed: true, Value: "enforcing"}); err != nil {
				return err
			}
			return h.SetSELinux(ctx, false)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := h.SetSELinux(ctx, true); err != nil || !first {
				return err
			}
			return op.Forget(ctx, h, p)
		},
	}, nil
}

// Gone restores enforcing mode. If SELinux has been disabled in the kernel since, there is
// nothing to restore.
func (p Permissive) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	_, recorded, err := op.ReadRecord(ctx, h, p)
	if err != nil || !recorded {
		return nil, err
	}
	return &op.Change{What: "set SELinux to enforcing again", Apply: func(ctx context.Context, h *steps.Host) error {
		if err := h.SetSELinux(ctx, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return op.Forget(ctx, h, p)
	}}, nil
}

// PermissiveAtBoot changes enforcing to permissive in /etc/selinux/config. Other modes are
// not changed.
func PermissiveAtBoot() op.Edit {
	return op.Edit{Path: "/etc/selinux/config", Line: func(line string) string {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == "SELINUX" && strings.TrimSpace(value) == "enforcing" {
			return "SELINUX=permissive"
		}
		return line
	}}
}

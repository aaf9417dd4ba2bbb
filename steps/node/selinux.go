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

// DisableSELinux has SELinux forbid nothing, now and after a boot. It stays in the
// kernel and goes on labelling files, so that enforcing can come back.
func DisableSELinux() steps.Step { return op.Ensure("node.disable-selinux", selinux()) }

// RestoreSELinux is its inverse.
func RestoreSELinux() steps.Step { return op.Remove("node.restore-selinux", selinux()) }

// Permissive is SELinux that notes and does not forbid, now. That it stays so after
// a boot is a file's business: PermissiveAtBoot. A kernel that runs without SELinux
// is left alone.
type Permissive struct{ op.NoNeeds }

func (Permissive) String() string { return "SELinux permissive" }

// Want has SELinux forbid nothing.
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

// Gone has SELinux forbid again. Where somebody has taken it out of the kernel
// since, there is nothing to put back.
func (p Permissive) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	_, recorded, err := op.Recall(ctx, h, p)
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

// PermissiveAtBoot keeps SELinux from forbidding after a boot. A host whose file
// says permissive or disabled keeps that.
func PermissiveAtBoot() op.Edit {
	return op.Edit{Path: "/etc/selinux/config", Line: func(line string) string {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == "SELINUX" && strings.TrimSpace(value) == "enforcing" {
			return "SELINUX=permissive"
		}
		return line
	}}
}

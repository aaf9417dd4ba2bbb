package op

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/mensylisir/kubexm/steps"
)

// Permissive is SELinux that notes and does not forbid, now. That it stays so after
// a boot is a file's business: PermissiveAtBoot. A kernel that runs without SELinux
// is left alone.
type Permissive struct{ noNeeds }

func (Permissive) String() string { return "SELinux permissive" }

// Want has SELinux forbid nothing.
func (p Permissive) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	enforcing, err := h.SELinux(ctx)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !enforcing {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	first := false
	return &Change{
		What: "set SELinux to permissive",
		Apply: func(ctx context.Context, h *steps.Host) error {
			_, recorded, err := recall(ctx, h, p)
			if err != nil {
				return err
			}
			if first = !recorded; first {
				if err := remember(ctx, h, p, entry{Existed: true, Value: "enforcing"}); err != nil {
					return err
				}
			}
			return h.SetSELinux(ctx, false)
		},
		Undo: func(ctx context.Context, h *steps.Host) error {
			if err := h.SetSELinux(ctx, true); err != nil || !first {
				return err
			}
			return forget(ctx, h, p)
		},
	}, nil
}

// Gone has SELinux forbid again. Where somebody has taken it out of the kernel
// since, there is nothing to put back.
func (p Permissive) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	_, recorded, err := recall(ctx, h, p)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: "set SELinux to enforcing again", Apply: func(ctx context.Context, h *steps.Host) error {
		if err := h.SetSELinux(ctx, true); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return forget(ctx, h, p)
	}}, nil
}

// PermissiveAtBoot keeps SELinux from forbidding after a boot. A host whose file
// says permissive or disabled keeps that.
func PermissiveAtBoot() Edit {
	return Edit{Path: "/etc/selinux/config", Line: func(line string) string {
		key, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(key) == "SELINUX" && strings.TrimSpace(value) == "enforcing" {
			return "SELINUX=permissive"
		}
		return line
	}}
}

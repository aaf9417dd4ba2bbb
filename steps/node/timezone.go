package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

const zoneinfo = "/usr/share/zoneinfo/"

// timezone is the link that the C library reads, and /etc/timezone if the distribution has
// that file.
func timezone(c *manifest.Cluster) []op.Resource {
	zone := c.Spec.System.Timezone
	rs := op.When(anotherZone(zone), op.Link{Path: "/etc/localtime", Target: "../usr/share/zoneinfo/" + zone})
	named := func(ctx context.Context, h *steps.Host) (bool, error) { return h.Exists(ctx, "/etc/timezone") }
	return append(rs, op.When(named, op.Text("/etc/timezone", func(context.Context, *steps.Host) ([]byte, error) {
		return []byte(zone + "\n"), nil
	}))...)
}

// anotherZone reports whether the host has another time zone, by the target of its link. A
// time zone that does not exist on the host is an error once the packages are installed.
func anotherZone(zone string) func(context.Context, *steps.Host) (bool, error) {
	return func(ctx context.Context, h *steps.Host) (bool, error) {
		known, err := h.Exists(ctx, zoneinfo+zone)
		if err != nil {
			return false, err
		}
		if !known {
			return false, op.Later(steps.Advise(fmt.Errorf("the host has no %s%s", zoneinfo, zone),
				"choose a time zone that %s has, or add its operating system to spec.bundle.operatingSystems and build the bundle again, which then includes tzdata", h.Name))
		}
		i, err := h.Stat(ctx, "/etc/localtime")
		if errors.Is(err, fs.ErrNotExist) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		target := i.Target
		if !path.IsAbs(target) {
			target = path.Join("/etc", target)
		}
		return !i.IsLink() || path.Clean(target) != zoneinfo+zone, nil
	}
}

// SetTimezone sets the host's time zone to spec.system.timezone.
func SetTimezone(c *manifest.Cluster) steps.Step {
	return op.Ensure("node.set-timezone", timezone(c))
}

// RestoreTimezone restores the host's earlier time zone.
func RestoreTimezone(c *manifest.Cluster) steps.Step {
	return op.Remove("node.restore-timezone", timezone(c))
}

package node

import (
	"context"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// podInterfaces is the file of NetworkManager about the interfaces of the pod network.
const podInterfaces = "/etc/NetworkManager/conf.d/90-kubexm-pod-network.conf"

// leftInterfaces keeps NetworkManager, where it runs, from the interfaces of the pod network: it would
// change their routes. "+=" adds to what other files say (NetworkManager.conf(5)).
func leftInterfaces(c *manifest.Cluster) []op.Resource {
	runs := func(ctx context.Context, h *steps.Host) (bool, error) {
		u, err := h.Unit(ctx, "NetworkManager.service")
		return u.IsActive(), err
	}
	return op.When(runs,
		op.Dir{Path: path.Dir(podInterfaces)},
		op.Text(podInterfaces, func(context.Context, *steps.Host) ([]byte, error) {
			return []byte("# Written by kubexm.\n[keyfile]\nunmanaged-devices+=interface-name:" + strings.Join(part.NetworkOf(c).Unmanaged, ";interface-name:") + "\n"), nil
		}),
		Follower{Name: "NetworkManager.service", Reload: true, Of: "interfaces"})
}

// LeaveInterfaces keeps NetworkManager on a node from the interfaces of the pod network.
func LeaveInterfaces(c *manifest.Cluster) steps.Step {
	return op.Ensure("node.leave-interfaces", leftInterfaces(c))
}

// ManageInterfaces is its inverse.
func ManageInterfaces(c *manifest.Cluster) steps.Step {
	return op.Remove("node.manage-interfaces", leftInterfaces(c))
}

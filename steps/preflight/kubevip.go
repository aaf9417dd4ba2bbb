package preflight

import (
	"context"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
)

// checkKubeVIP checks a master that may hold the virtual IP. It needs no further programs.
func checkKubeVIP(ctx context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	out := wrongInterface(h.Cluster, h)
	ours, err := loadbalancer.InstalledKubeVIP(ctx, h)
	if err != nil || ours || o.HoldsVIP {
		return out, err
	}
	vip := part.EndpointOf(h.Cluster).VIP
	for _, i := range h.Facts.Interfaces { // kube-vip was killed before it removed the address
		for _, p := range i.Addresses {
			if p.Addr().String() == vip {
				return append(out, steps.Finding{What: "has the virtual IP " + vip + " on the interface " + i.Name + " already", Advice: "if no other program needs it, remove it: ip addr del " + p.String() + " dev " + i.Name}), nil
			}
		}
	}
	used, err := usedVirtualIP(ctx, h)
	return append(out, used...), err
}

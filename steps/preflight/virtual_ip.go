package preflight

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/loadbalancer"
	"github.com/mensylisir/kubexm/steps/runner"
)

func virtualIPCheck() Check {
	return Check{
		Name: "preflight.virtual-ip", Question: "whether the hosts can hold the virtual IP", Levels: "error, warning, note", On: OnBalancers, Slow: true,
		Limits: "a network interface has the host's internal address, and the virtual IP is in its subnet; nothing answers at the virtual IP; two load balancer hosts at least (warning)",
		Reads:  "network interfaces; a connection to the virtual IP that the host's sshd opens for kubexm; programs and configuration of haproxy, nginx and keepalived; kube-vip's manifest",
		Source: "keepalived.conf(5); VRRP and ARP move an address within one subnet",
		look:   checkVirtualIP,
	}
}

func checkVirtualIP(ctx context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	c := h.Cluster
	if part.EndpointOf(c).Front == part.KubeVIPFront {
		return checkKubeVIP(ctx, h, o)
	}
	var out steps.Findings
	if all := part.Balancers.Names(c); len(all) == 1 && all[0] == h.Name {
		out = append(out, steps.Finding{Warning: true, What: "is the only load balancer host: when it fails, clients reach no API server",
			Advice: "add a second host to spec.roleGroups.loadbalancer"})
	}
	out = append(out, wrongInterface(c, h)...)
	programs, err := balancerPrograms(ctx, h, o)
	if err != nil {
		return nil, err
	}
	out = append(out, programs...)
	ours, err := loadbalancer.Configured(ctx, h)
	if err != nil || ours || o.HoldsVIP {
		return out, err
	}
	used, err := usedVirtualIP(ctx, h)
	return append(out, used...), err
}

// wrongInterface reports that the host has no interface for the virtual IP.
func wrongInterface(c *manifest.Cluster, h *steps.Host) steps.Findings {
	_, field := loadbalancer.ConfiguredInterface(c)
	name, err := loadbalancer.Interface(c, h)
	if err != nil {
		return steps.Findings{{What: err.Error(), Advice: "write " + field}}
	}
	i := slices.IndexFunc(h.Facts.Interfaces, func(i runner.Interface) bool { return i.Name == name })
	if i < 0 {
		return steps.Findings{{What: "has no network interface " + name, Advice: "correct " + field}}
	}
	vip, err := netip.ParseAddr(part.EndpointOf(c).VIP)
	if err != nil {
		return nil // reported by the validation of the config
	}
	if slices.ContainsFunc(h.Facts.Interfaces[i].Addresses, func(p netip.Prefix) bool { return p.Masked().Contains(vip) }) {
		return nil
	}
	return steps.Findings{{What: fmt.Sprintf("interface %s has no address in the subnet of the virtual IP %s", name, vip),
		Advice: "choose an address of that subnet as spec.controlPlaneEndpoint.address, or correct " + field}}
}

// balancerPrograms reports programs that neither the host nor the bundle has.
func balancerPrograms(ctx context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	if len(o.Systems) > 0 {
		return nil, nil // preflight.packages checks them
	}
	var missing []string
	for _, name := range []string{string(part.EndpointOf(h.Cluster).Program), "keepalived"} {
		switch _, err := h.FindProgram(ctx, name); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return nil, err
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return steps.Findings{{What: "has no " + strings.Join(missing, " and no "), Advice: "list the host's distribution in spec.bundle.operatingSystems and build the bundle again, or install " + strings.Join(missing, ", ")}}, nil
}

// usedVirtualIP reports that some machine answers at the virtual IP before any load
// balancer of the cluster does.
func usedVirtualIP(ctx context.Context, h *steps.Host) (steps.Findings, error) {
	e := part.EndpointOf(h.Cluster)
	at := net.JoinHostPort(e.VIP, strconv.Itoa(e.Port))
	what, why := h.Reach(ctx, at, reachTimeout)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case what == runner.Untested:
		return steps.Findings{{Note: true, What: "not tested whether " + e.VIP + " is unused: sshd forwards no connections",
			Advice: "allow it for a while (AllowTcpForwarding local in sshd_config), or test by hand: ping " + e.VIP}}, nil
	case what == runner.Unreached:
		return nil, nil
	}
	answer := "accepts connections at " + at
	if errors.Is(why, runner.ErrRefused) {
		answer = "refuses connections at " + at
	}
	return steps.Findings{{What: "the virtual IP is in use: a machine " + answer, Advice: "choose an unused address as spec.controlPlaneEndpoint.address; `ip neigh show " + e.VIP + "` on " + h.Name + " shows the machine's MAC address"}}, nil
}

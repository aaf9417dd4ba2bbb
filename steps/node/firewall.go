package node

import (
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// firewall is what loads rules of its own: firewalld, ufw, and the units that load
// the files of nftables (Debian, RHEL), of iptables-services (RHEL) and of
// iptables-persistent (Debian).
func firewall() []op.Resource {
	rs := []op.Resource{NoUFW{}}
	for _, unit := range []string{"firewalld.service", "nftables.service", "iptables.service", "ip6tables.service", "netfilter-persistent.service"} {
		rs = append(rs, Off{Name: unit})
	}
	return rs
}

// DisableFirewall switches the host's firewall off, now and after a boot.
func DisableFirewall() steps.Step { return op.Ensure("node.disable-firewall", firewall()) }

// RestoreFirewall is its inverse.
func RestoreFirewall() steps.Step { return op.Remove("node.restore-firewall", firewall()) }

package node

import (
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// firewall returns the services that load packet filter rules: firewalld, ufw, and the
// units that load the files of nftables (Debian, RHEL), of iptables-services (RHEL) and of
// iptables-persistent (Debian).
func firewall() []op.Resource {
	rs := []op.Resource{NoUFW{}}
	for _, unit := range []string{"firewalld.service", "nftables.service", "iptables.service", "ip6tables.service", "netfilter-persistent.service"} {
		rs = append(rs, Off{Name: unit})
	}
	return rs
}

// DisableFirewall stops the host's firewall and disables it at boot.
func DisableFirewall() steps.Step { return op.Ensure("node.disable-firewall", firewall()) }

// RestoreFirewall starts and enables the host's firewall again, as it was before.
func RestoreFirewall() steps.Step { return op.Remove("node.restore-firewall", firewall()) }

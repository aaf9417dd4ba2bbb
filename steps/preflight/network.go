package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

func networkChecks() []Check {
	return []Check{
		{
			Name: "preflight.default-route", Asks: "whether there is a default route", Levels: "error", On: OnNodes,
			Limits: "one of IPv4 or IPv6", Reads: "ip route show default", Source: "kubeadm and kubelet take the host's address from it, and the kernel refuses to send to a Service's address without a route",
			look: byFacts(checkDefaultRoute),
		},
		{
			Name: "preflight.duplicates", Asks: "whether two hosts are told apart: host name, machine id, product UUID, MAC address", Levels: "error, warning", On: OnFirst, Compares: true,
			Limits: "each is one host's alone; a product UUID that two share is a warning, and so is a host name where spec.system.keep does not name hostname", Reads: "/proc/sys/kernel/hostname, /etc/machine-id, /sys/class/dmi/id/product_uuid, ip link", Source: "kubeadm's requirements; clones of one machine get one address from a DHCP server",
			look: compare(checkDuplicates),
		},
		{
			Name: "preflight.mtu", Asks: "whether the interfaces of all hosts take packets of one size", Levels: "warning", On: OnFirst, Compares: true,
			Limits: "the MTU of the interface with the internal address is the same on all nodes", Reads: "ip link", Source: "the pod network takes its MTU from the host it starts on: with a smaller one elsewhere large packets are lost",
			look: compare(checkMTU),
		},
	}
}

// inside gives the address that the cluster's machines use for a host, and the
// interface that has it.
func inside(h manifest.Host, f runner.Facts) (netip.Addr, runner.Interface, bool) {
	for _, text := range append(slices.Clone(h.InternalAddress), h.Address) {
		if a, err := netip.ParseAddr(text); err == nil {
			i, ok := f.InterfaceOf(a)
			return a, i, ok
		}
	}
	return netip.Addr{}, runner.Interface{}, false
}

func checkDefaultRoute(h *steps.Host) steps.Findings {
	if h.Facts.Default != "" {
		return nil
	}
	return steps.Findings{{What: "has no default route", Advice: "add one, even to a gateway that leads nowhere: a host without one does not reach the addresses of Services"}}
}

func checkDuplicates(c *manifest.Cluster, all []peer) steps.Findings {
	var out steps.Findings
	keeps := c.Spec.System.Keeps(manifest.KeepHostname)
	rename := "nothing: each gets its name in spec.hosts"
	if keeps {
		rename = "give each machine a name of its own: hostnamectl set-hostname; or take hostname out of spec.system.keep"
	}
	for _, kind := range []struct {
		what, advice string
		warning      bool
		of           func(peer) string
	}{
		{"host name", rename, !keeps, func(p peer) string { return p.facts.Hostname }},
		{"machine id", "the machines are clones: rm /etc/machine-id /var/lib/dbus/machine-id, systemd-machine-id-setup, and boot", false, func(p peer) string { return p.facts.MachineID }},
		{"product UUID", "have the hypervisor give each machine its own", true, func(p peer) string { return p.facts.ProductUUID }},
		{"MAC address", "have the hypervisor give each interface its own", false, func(p peer) string {
			_, i, _ := inside(p.Host, p.facts)
			return i.MAC
		}},
	} {
		by := map[string][]string{}
		for _, p := range all {
			if id := kind.of(p); id != "" {
				by[id] = append(by[id], p.Name)
			}
		}
		for _, p := range all {
			if same := by[kind.of(p)]; len(same) > 1 {
				out = append(out, steps.Finding{Host: p.Name, What: fmt.Sprintf("the %s %s is that of %s", kind.what, kind.of(p), names(same)), Advice: kind.advice, Warning: kind.warning})
			}
		}
	}
	return out
}

// mostNames is how many hosts a finding names.
const mostNames = 4

// names lists hosts: "w1, w2 and 7 more".
func names(hosts []string) string {
	if n := len(hosts) - mostNames; n > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(hosts[:mostNames], ", "), n)
	}
	last := len(hosts) - 1
	if last < 1 {
		return strings.Join(hosts, "")
	}
	return strings.Join(hosts[:last], ", ") + " and " + hosts[last]
}

func checkMTU(c *manifest.Cluster, all []peer) steps.Findings {
	by := map[int][]string{}
	for _, p := range all {
		if !part.Nodes.In(c, p.Name) {
			continue
		}
		if _, i, ok := inside(p.Host, p.facts); ok && i.MTU > 0 {
			by[i.MTU] = append(by[i.MTU], p.Name)
		}
	}
	if len(by) < 2 {
		return nil
	}
	most := 0 // what most have; of two that as many have the larger
	for mtu, hosts := range by {
		if n := len(hosts) - len(by[most]); most == 0 || n > 0 || n == 0 && mtu > most {
			most = mtu
		}
	}
	var out steps.Findings
	for mtu, hosts := range by {
		for _, host := range hosts {
			if mtu != most {
				out = append(out, steps.Finding{Host: host, What: fmt.Sprintf("the MTU is %d, that of %s is %d", mtu, names(by[most]), most), Advice: "set the same on all nodes", Warning: true})
			}
		}
	}
	return out
}

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
			Name: "preflight.default-route", Question: "whether the host has a default route", Levels: "error", On: OnNodes,
			Limits: "one of IPv4 or IPv6", Reads: "ip route show default", Source: "kubeadm and kubelet choose the host's address by it, and without a route the kernel sends nothing to a Service's address",
			look: byFacts(checkDefaultRoute),
		},
		{
			Name: "preflight.duplicates", Question: "whether each host has a unique host name, machine id, product UUID and MAC address", Levels: "error, warning", On: OnFirst, Compares: true,
			Limits: "each is unique; a duplicate product UUID is a warning, and so is a duplicate host name unless spec.system.keep contains hostname", Reads: "/proc/sys/kernel/hostname, /etc/machine-id, /sys/class/dmi/id/product_uuid, ip link", Source: "kubeadm's requirements; clones of one machine get the same address from a DHCP server",
			look: compare(checkDuplicates),
		},
		{
			Name: "preflight.mtu", Question: "whether the interfaces of all nodes have the same MTU", Levels: "warning", On: OnFirst, Compares: true,
			Limits: "the MTU of the interface with the internal address is the same on all nodes", Reads: "ip link", Source: "the pod network uses the MTU of the host that it starts on; another host with a smaller MTU loses large packets",
			look: compare(checkMTU),
		},
	}
}

// inside returns the address that the cluster's hosts use for a host, and the
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
	return steps.Findings{{What: "has no default route", Advice: "add one, even to an unused gateway: without a default route a host does not reach the addresses of Services"}}
}

func checkDuplicates(c *manifest.Cluster, all []peer) steps.Findings {
	var out steps.Findings
	keeps := c.Spec.System.Keeps(manifest.KeepHostname)
	rename := "no action needed: kubexm sets each host's name to the one in spec.hosts"
	if keeps {
		rename = "set a unique name on each machine with hostnamectl set-hostname; or remove hostname from spec.system.keep"
	}
	for _, kind := range []struct {
		what, advice string
		warning      bool
		of           func(peer) string
	}{
		{"host name", rename, !keeps, func(p peer) string { return p.facts.Hostname }},
		{"machine id", "the machines are clones: rm /etc/machine-id /var/lib/dbus/machine-id, run systemd-machine-id-setup, and reboot", false, func(p peer) string { return p.facts.MachineID }},
		{"product UUID", "configure a unique UUID for each machine in the hypervisor", true, func(p peer) string { return p.facts.ProductUUID }},
		{"MAC address", "configure a unique MAC address for each interface in the hypervisor", false, func(p peer) string {
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
				out = append(out, steps.Finding{Host: p.Name, What: fmt.Sprintf("the %s %s is the same on %s", kind.what, kind.of(p), names(same)), Advice: kind.advice, Warning: kind.warning})
			}
		}
	}
	return out
}

// mostNames is how many hosts a finding lists by name.
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
	most := 0 // the most frequent MTU; of two equally frequent ones the larger
	for mtu, hosts := range by {
		if n := len(hosts) - len(by[most]); most == 0 || n > 0 || n == 0 && mtu > most {
			most = mtu
		}
	}
	var out steps.Findings
	for mtu, hosts := range by {
		for _, host := range hosts {
			if mtu != most {
				out = append(out, steps.Finding{Host: host, What: fmt.Sprintf("the MTU is %d; that of %s is %d", mtu, names(by[most]), most), Advice: "set the same MTU on all nodes", Warning: true})
			}
		}
	}
	return out
}

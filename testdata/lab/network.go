package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The addresses of a lab are from ranges that belong to nobody outside, one
// for each index: 10.99.INDEX.0/24 and fd99:0:0:INDEX::/64. The gateway is at
// 1, the workdir hosts at 2 and 3, the hosts from 11 on. What the lab itself asks of
// hosts by ssh comes from 4, which the workdir host has too: so a host's log tells it
// from what is run on the workdir host. Where Options.Addresses gives the hosts others,
// these numbers are 251 to 254 of their ranges.
const (
	gatewayNumber   = 1
	workdirNumber   = 2
	elsewhereNumber = 3
	askerNumber     = 4
	besideHosts     = 250 // is added to them where hosts have the low numbers
	bridge          = "br0"
)

func (l *Lab) address(n int) string {
	if l.Net == "" {
		return fmt.Sprintf("10.99.%d.%d", l.Index, n)
	}
	return fmt.Sprintf("%s.%d", l.Net, beside(n))
}

func (l *Lab) address6(n int) string {
	if l.Net6 == "" {
		return fmt.Sprintf("fd99:0:0:%x::%x", l.Index, n)
	}
	return fmt.Sprintf("%s::%x", l.Net6, beside(n))
}

func beside(n int) int {
	if n >= gatewayNumber && n <= askerNumber {
		return besideHosts + n
	}
	return n
}

func (l *Lab) mac(n int) string { return fmt.Sprintf("02:99:00:00:%02x:%02x", l.Index, n) }

// Subnet is the range that the lab's addresses are from.
func (l *Lab) Subnet() string { return l.address(0) + "/24" }

// Gateway is the address that every way out of the lab ends at.
func (l *Lab) Gateway() string { return l.address(gatewayNumber) }

// netns names a network namespace of the lab: of a host, of the workdir host,
// or with "" the one that holds the bridge and the gateway.
func (l *Lab) netns(of string) string {
	if of == "" {
		of = "net"
	}
	return "kxl-" + l.Name + "-" + of
}

// namespaces lists all that the lab has, the one with the bridge first.
func (l *Lab) namespaces() []string {
	list := []string{l.netns(""), l.netns(workdirSuffix), l.netns(elsewhereSuffix)}
	for _, h := range l.Hosts {
		list = append(list, l.netns(h.Name))
	}
	return list
}

// makeNetwork makes the bridge, in a namespace that has no other link out, and
// puts every host on it. The default routes lead to the gateway, which
// forwards nothing: without one, a host could not even reach the cluster's
// service addresses, and what tries to leave could not be seen.
func (l *Lab) makeNetwork(ctx context.Context) error {
	var b batch
	net := l.netns("")
	b.netns(net)
	b.add("-n %s link add %s type bridge mcast_snooping 0", net, bridge)
	b.add("-n %s link set %s address %s", net, bridge, l.mac(gatewayNumber))
	b.add("-n %s addr add %s/24 dev %s", net, l.address(gatewayNumber), bridge)
	b.add("-n %s addr add %s/64 dev %s nodad", net, l.address6(gatewayNumber), bridge)
	b.add("-n %s link set %s up", net, bridge)
	l.join(&b, workdirSuffix, l.mac(workdirNumber), l.address(workdirNumber), l.address6(workdirNumber))
	l.join(&b, elsewhereSuffix, l.mac(elsewhereNumber), l.address(elsewhereNumber), l.address6(elsewhereNumber))
	b.add("-n %s addr add %s/24 dev eth0", l.netns(workdirSuffix), l.address(askerNumber))
	for i := range l.Hosts {
		l.plug(&b, &l.Hosts[i])
	}
	// A name server must be named: without one CoreDNS does not start.
	if err := l.writeResolver(); err != nil {
		return err
	}
	return b.run(ctx)
}

// plug puts a host on the bridge.
func (l *Lab) plug(b *batch, h *Host) {
	if h.emulated() {
		l.plugMachine(b, h.Name)
		return
	}
	l.join(b, h.Name, h.MAC, h.Address, h.Address6)
}

// join puts a namespace on the bridge.
func (l *Lab) join(b *batch, name, mac, address, address6 string) {
	net, own, port := l.netns(""), l.netns(name), "v"+name
	b.netns(own)
	b.add("-n %s link add %s type veth peer name eth0 netns %s", net, port, own)
	b.add("-n %s link set %s master %s up", net, port, bridge)
	b.add("-n %s link set eth0 address %s", own, mac)
	b.add("-n %s addr add %s/24 dev eth0", own, address)
	b.add("-n %s addr add %s/64 dev eth0 nodad", own, address6)
	b.add("-n %s link set eth0 up", own)
	b.add("-n %s route add default via %s", own, l.address(gatewayNumber))
	b.add("-n %s route add default via %s", own, l.address6(gatewayNumber))
}

// writeResolver gives the workdir hosts a resolv.conf: `ip netns exec` lays what
// is in such a folder over /etc.
func (l *Lab) writeResolver() error {
	for _, dir := range l.etc() {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "resolv.conf"), []byte(l.resolver()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lab) etc() []string {
	return []string{filepath.Join("/etc/netns", l.netns(workdirSuffix)), filepath.Join("/etc/netns", l.netns(elsewhereSuffix))}
}

func (l *Lab) resolver() string {
	return "nameserver " + l.Gateway() + "\noptions timeout:1 attempts:1\n"
}

// removeNetwork removes what makeNetwork made, as far as it is there.
func (l *Lab) removeNetwork() error {
	var first error
	for _, ns := range l.namespaces() {
		if _, err := os.Stat("/run/netns/" + ns); err != nil {
			continue
		}
		if out, err := exec.Command("ip", "netns", "del", ns).CombinedOutput(); err != nil && first == nil {
			first = fmt.Errorf("remove namespace %s: %s (%w)", ns, strings.TrimSpace(string(out)), err)
		}
	}
	for _, dir := range l.etc() {
		if err := os.RemoveAll(dir); err != nil && first == nil {
			first = err
		}
	}
	_ = os.Remove("/etc/netns") // where nobody else has a folder in it
	return first
}

// batch is a list of ip's commands.
type batch struct {
	namespaces []string
	lines      []string
}

// netns adds a namespace with its loopback up, and IPv6 as the kernel has it.
func (b *batch) netns(name string) {
	b.namespaces = append(b.namespaces, name)
	b.add("-n %s link set lo up", name)
}

func (b *batch) add(format string, args ...any) {
	b.lines = append(b.lines, fmt.Sprintf(format, args...))
}

func (b *batch) run(ctx context.Context) error {
	for _, ns := range b.namespaces {
		if err := command(ctx, "ip", "netns", "add", ns); err != nil {
			return err
		}
	}
	for _, line := range b.lines {
		if err := command(ctx, "ip", strings.Fields(line)...); err != nil {
			return err
		}
	}
	return nil
}

// command runs a program of the machine; what it says is in the error.
func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %s (%w)", name, strings.Join(args, " "), lastLines(out, 3), err)
	}
	return nil
}

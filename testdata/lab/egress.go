package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Attempt is what one host sent towards one place outside of the lab.
type Attempt struct {
	Host        string     `json:"host"` // who sent it: a host, the workdir host, or an unknown sender's MAC
	Source      netip.Addr `json:"source"`
	Destination netip.Addr `json:"destination"`
	Protocol    string     `json:"protocol"`       // tcp, udp, dns, icmp, icmp6, igmp, arp, or a number
	Port        int        `json:"port"`           // 0 where the protocol has none
	Name        string     `json:"name,omitempty"` // what a DNS query asked for, with its type: "example.com. A"
	Packets     int        `json:"packets"`
	First       time.Time  `json:"first"`
	// Allowed is why this is none of what the lab is to catch; "" means it is.
	Allowed string `json:"allowed,omitempty"`
}

func (a Attempt) String() string {
	s := fmt.Sprintf("%s (%s) sent %d × %s to %s", a.Host, a.Source, a.Packets, a.Protocol, a.Destination)
	if a.Port != 0 {
		s += fmt.Sprintf(" port %d", a.Port)
	}
	if a.Name != "" {
		s += " asking for " + a.Name
	}
	return s
}

// Housekeeping is one kind of packet that is no attempt to leave, and why.
type Housekeeping struct {
	Reason string
	fits   func(l *Lab, a *Attempt) bool
}

// Allowed lists all housekeeping: what a host says to its own link, what CoreDNS asks
// of itself, and what kubexm asks of the host's name server.
var Allowed = []Housekeeping{
	{"IPv6 finds its neighbours and routers on its own link (RFC 4861)", func(_ *Lab, a *Attempt) bool {
		return a.Protocol == "icmp6" && a.Destination.IsLinkLocalMulticast() && slices.Contains([]string{"RS", "RA", "NS", "NA"}, a.Name)
	}},
	{"a host tells its own link which groups it listens to (RFC 3810, RFC 3376)", func(_ *Lab, a *Attempt) bool {
		return a.Destination.IsLinkLocalMulticast() && (a.Protocol == "icmp6" && a.Name == "MLD" || a.Protocol == "igmp")
	}},
	{"CoreDNS asks for a random name when it starts, to find a loop to itself", func(_ *Lab, a *Attempt) bool {
		name, ok := strings.CutSuffix(a.Name, ". HINFO")
		label := strings.Split(name, ".")
		return ok && a.Protocol == "dns" && len(label) == 2 && digits(label[0]) && digits(label[1])
	}},
	{"a pod asks for a Service of the cluster before kube-proxy has come up", func(l *Lab, a *Attempt) bool {
		return slices.ContainsFunc(l.services, func(r netip.Prefix) bool { return r.Contains(a.Destination) })
	}},
	{"CoreDNS asks the host's name server for the root, to see if it lives, after that query had no answer", func(l *Lab, a *Attempt) bool {
		return a.Protocol == "dns" && a.Name == ". NS" && a.Destination.String() == l.Gateway()
	}},
	{"preflight looks if the host's name server takes connections; a name is asked for by UDP first", func(l *Lab, a *Attempt) bool {
		return a.Protocol == "dns" && a.Name == connects && a.Destination.String() == l.Gateway()
	}},
}

// Inside says that a range of addresses is a cluster's own, for its Services:
// nobody but its nodes knows it. What a pod sends there before kube-proxy has
// come up follows the default route, to the gateway, and is no attempt to leave.
func (l *Lab) Inside(r netip.Prefix) { l.services = append(l.services, r) }

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// counted is the table of the gateway's own count of what is for outside, to
// hold what was written down against. br_netfilter has what the bridge passes on
// from host to host come by here too, which is not for the gateway.
const counted = `
table inet watch {
	counter outside4 { }
	counter outside6 { }
	chain arrived {
		type filter hook prerouting priority raw; policy accept;
		ether daddr %[3]s ip daddr != { %[1]s, 224.0.0.0/4, 255.255.255.255 } counter name outside4
		ether daddr %[3]s ip6 daddr != { %[2]s/64, fe80::/10, ff00::/8 } counter name outside6
	}
}
`

func (l *Lab) capture() string { return filepath.Join(l.Dir, "egress.pcap") }

// watch starts counting and writing down what reaches the gateway.
func (l *Lab) watch(ctx context.Context) error {
	table := exec.CommandContext(ctx, "ip", "netns", "exec", l.netns(""), "nft", "-f", "-")
	table.Stdin = strings.NewReader(fmt.Sprintf(counted, l.Subnet(), l.address6(0), l.mac(gatewayNumber)))
	if out, err := table.CombinedOutput(); err != nil {
		return fmt.Errorf("count at the gateway: %s (%w)", lastLines(out, 3), err)
	}
	// It outlives this process, and ends by Down. What a bridge passes on from
	// host to host does not come by here; what is for the gateway or for all does.
	cmd := exec.Command("ip", "netns", "exec", l.netns(""), "tcpdump",
		"-i", bridge, "-p", "-n", "-U", "-s", "400", "-Z", "root", "--immediate-mode", "-w", l.capture(), "inbound")
	var err error
	if l.Watcher, err = start(cmd, filepath.Join(l.Dir, "watcher.log")); err != nil {
		return err
	}
	for try := 0; ; try++ {
		said, err := os.ReadFile(filepath.Join(l.Dir, "watcher.log"))
		switch {
		case strings.Contains(string(said), "listening on"):
			return nil
		case err != nil, !l.Watcher.alive(), try > 200:
			return fmt.Errorf("listen at the gateway: %s", lastLines(said, 3))
		}
		time.Sleep(25 * time.Millisecond)
	}
}

// Egress tells what tried to leave the lab since it went up, by host. It is an
// error if the watch has gaps: then no silence proves anything.
func (l *Lab) Egress(ctx context.Context) ([]Attempt, error) {
	if !l.Watcher.alive() {
		return nil, fmt.Errorf("nobody watches the gateway of lab %s any more", l.Name)
	}
	before, err := l.count(ctx)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(3 * time.Second)
	for {
		packets, err := readCapture(l.capture())
		if err != nil {
			return nil, err
		}
		all, outside := l.sort(packets)
		if outside >= before {
			return all, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the gateway of lab %s counted %d packets for outside, and wrote only %d down", l.Name, before, outside)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Left gives only what is not allowed.
func Left(all []Attempt) []Attempt {
	return slices.DeleteFunc(slices.Clone(all), func(a Attempt) bool { return a.Allowed != "" })
}

// sort groups packets to attempts, and counts those that the gateway's own
// counters count too.
func (l *Lab) sort(packets []packet) ([]Attempt, int) {
	groups := map[string]*Attempt{}
	outside := 0
	for _, p := range packets {
		if p.protocol != "arp" && !l.inside(p.destination) && !p.destination.IsMulticast() && !p.broadcast() && !p.destination.IsLinkLocalUnicast() {
			outside++
		}
		a, ok := l.attempt(p)
		if !ok {
			continue
		}
		key := fmt.Sprint(a.Host, a.Source, a.Destination, a.Protocol, a.Port, a.Name)
		if groups[key] == nil {
			groups[key] = &a
			for _, h := range Allowed {
				if h.fits(l, &a) {
					a.Allowed = h.Reason
				}
			}
		}
		groups[key].Packets++
	}
	all := make([]Attempt, 0, len(groups))
	for _, a := range groups {
		all = append(all, *a)
	}
	slices.SortFunc(all, func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), a.First.Compare(b.First), cmp.Compare(a.String(), b.String()))
	})
	return all, outside
}

// attempt reports whether p is for outside: an address that is not the lab's, a
// group, all of the link, or a name server.
func (l *Lab) attempt(p packet) (Attempt, bool) {
	a := Attempt{
		Host: l.sender(p.sender), Source: p.source, Destination: p.destination,
		Protocol: p.protocol, Port: p.port, Name: p.name, First: p.at,
	}
	switch {
	case p.protocol == "dns":
		return a, true
	case p.protocol == "arp" && p.destination == p.source: // a host checks or tells its own address
		return a, false
	default:
		return a, !l.inside(p.destination)
	}
}

// inside reports whether an address is of the lab's own range, or of one link only.
func (l *Lab) inside(a netip.Addr) bool {
	for _, text := range []string{l.Subnet(), l.address6(0) + "/64"} {
		if netip.MustParsePrefix(text).Contains(a) {
			return a.String() != l.address(255) // which is for all of them
		}
	}
	return a.IsLinkLocalUnicast() && a.Is6()
}

// sender names the host of a MAC address.
func (l *Lab) sender(mac string) string {
	switch mac {
	case l.mac(workdirNumber):
		return "workdir"
	case l.mac(elsewhereNumber):
		return "elsewhere"
	}
	for _, h := range l.Hosts {
		if h.MAC == mac {
			return h.Name
		}
	}
	return mac
}

// count reads the gateway's own count of packets for outside.
func (l *Lab) count(ctx context.Context) (int, error) {
	out, err := exec.CommandContext(ctx, "ip", "netns", "exec", l.netns(""), "nft", "-j", "list", "counters").Output()
	if err != nil {
		return 0, fmt.Errorf("read the gateway's counters: %w", err)
	}
	var list struct {
		Nftables []struct {
			Counter struct {
				Packets int `json:"packets"`
			} `json:"counter"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return 0, fmt.Errorf("read the gateway's counters: %w", err)
	}
	sum := 0
	for _, c := range list.Nftables {
		sum += c.Counter.Packets
	}
	return sum, nil
}

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// link is the interface that gets the virtual IP.
type link struct {
	name string
	ip   net.IP
}

func newLink(name, ip string) (*link, error) {
	if _, err := net.InterfaceByName(name); err != nil {
		return nil, fmt.Errorf("%s is not valid interface, reason: %w", name, err)
	}
	return &link{name: name, ip: net.ParseIP(ip).To4()}, nil
}

// up reports an interface that is down, as isValidInterface of pkg/kubevip does.
func (l *link) up() error {
	state, err := os.ReadFile("/sys/class/net/" + l.name + "/operstate")
	if err != nil {
		return err
	}
	if s := strings.TrimSpace(string(state)); s != "up" && s != "unknown" {
		return fmt.Errorf("%s interface is not up", l.name)
	}
	return nil
}

func (l *link) cidr() string { return l.ip.String() + "/32" }

func (l *link) add(ctx context.Context) error {
	return ip(ctx, "addr", "replace", l.cidr(), "dev", l.name)
}

// remove removes the address, if it is there.
func (l *link) remove(ctx context.Context) error {
	i, err := net.InterfaceByName(l.name)
	if err != nil {
		return err
	}
	all, err := i.Addrs()
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.String() == l.cidr() {
			return ip(ctx, "addr", "del", l.cidr(), "dev", l.name)
		}
	}
	return nil
}

func ip(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %s (%w)", strings.Join(args, " "), strings.TrimSpace(string(out)), err)
	}
	return nil
}

// announce sends a gratuitous ARP reply to all neighbours: they may have another host's address.
func (l *link) announce() error {
	i, err := net.InterfaceByName(l.name)
	if err != nil {
		return err
	}
	if len(i.HardwareAddr) != 6 {
		return fmt.Errorf("%s has no Ethernet address", l.name)
	}
	protocol := htons(syscall.ETH_P_ARP)
	s, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_DGRAM, int(protocol))
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer syscall.Close(s)
	to := &syscall.SockaddrLinklayer{Protocol: protocol, Ifindex: i.Index, Halen: 6, Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
	return os.NewSyscallError("sendto", syscall.Sendto(s, gratuitous(i.HardwareAddr, l.ip), 0, to))
}

// gratuitous is an ARP reply that tells everybody who has the address (RFC 826, RFC 5227).
func gratuitous(mac net.HardwareAddr, ip net.IP) []byte {
	packet := []byte{0, 1, 8, 0, 6, 4, 0, 2} // Ethernet, IPv4, lengths, reply
	packet = append(append(packet, mac[:6]...), ip.To4()...)
	return append(append(packet, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), ip.To4()...)
}

func htons(n uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], n)
	return binary.NativeEndian.Uint16(b[:])
}

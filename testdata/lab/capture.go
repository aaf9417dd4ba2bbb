package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"
)

// packet is what the watch needs to know of one packet.
type packet struct {
	at          time.Time
	sender      string // MAC address
	source      netip.Addr
	destination netip.Addr
	protocol    string
	port        int
	name        string // of a DNS query, or what an ICMPv6 message is
}

func (p packet) broadcast() bool {
	return p.destination == netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// Of the file that tcpdump writes.
const (
	fileHead   = 24
	recordHead = 16
	magic      = 0xa1b2c3d4 // microseconds, in this machine's byte order
	ethernet   = 1
)

// readCapture reads the packets of a file that is being written: a last one
// that is not whole yet is left for the next time.
func readCapture(file string) ([]packet, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseCapture(raw)
}

func parseCapture(raw []byte) ([]packet, error) {
	if len(raw) < fileHead {
		return nil, nil
	}
	order := binary.NativeEndian
	if order.Uint32(raw) != magic || order.Uint32(raw[20:]) != ethernet {
		return nil, errors.New("what the watcher wrote is no capture of an ethernet")
	}
	var all []packet
	for raw = raw[fileHead:]; len(raw) >= recordHead; {
		seconds, micros, size := order.Uint32(raw), order.Uint32(raw[4:]), int(order.Uint32(raw[8:]))
		if size < 0 || size > len(raw)-recordHead {
			break
		}
		frame := raw[recordHead : recordHead+size]
		raw = raw[recordHead+size:]
		p, ok := parseFrame(frame)
		if !ok {
			continue
		}
		p.at = time.Unix(int64(seconds), int64(micros)*1000).UTC()
		all = append(all, p)
	}
	return all, nil
}

// parseFrame reads an ethernet frame; false is one that carries neither IP nor ARP.
func parseFrame(b []byte) (packet, bool) {
	if len(b) < 14 {
		return packet{}, false
	}
	p := packet{sender: net.HardwareAddr(b[6:12]).String()}
	kind, b := binary.BigEndian.Uint16(b[12:]), b[14:]
	switch kind {
	case 0x0806:
		return p.arp(b)
	case 0x0800:
		return p.ip4(b)
	case 0x86dd:
		return p.ip6(b)
	}
	return p, false
}

func (p packet) arp(b []byte) (packet, bool) {
	if len(b) < 28 {
		return p, false
	}
	p.protocol = "arp"
	p.source, p.destination = netip.AddrFrom4([4]byte(b[14:18])), netip.AddrFrom4([4]byte(b[24:28]))
	return p, true
}

func (p packet) ip4(b []byte) (packet, bool) {
	if len(b) < 20 {
		return p, false
	}
	head := int(b[0]&0x0f) * 4
	p.source, p.destination = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	if head < 20 || head > len(b) {
		return p, false
	}
	p.carried(int(b[9]), b[head:])
	return p, true
}

func (p packet) ip6(b []byte) (packet, bool) {
	if len(b) < 40 {
		return p, false
	}
	p.source, p.destination = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	next, b := int(b[6]), b[40:]
	// Hop-by-hop options come before what is carried; a router's alert is one.
	if next == 0 && len(b) >= 8 {
		n := (int(b[1]) + 1) * 8
		if n > len(b) {
			return p, false
		}
		next, b = int(b[0]), b[n:]
	}
	p.carried(next, b)
	return p, true
}

// carried reads what an IP packet carries, as far as it is there.
func (p *packet) carried(protocol int, b []byte) {
	switch protocol {
	case 1:
		p.protocol = "icmp"
	case 2:
		p.protocol = "igmp"
	case 6, 17:
		p.protocol = map[int]string{6: "tcp", 17: "udp"}[protocol]
		if len(b) < 4 {
			return
		}
		if p.port = int(binary.BigEndian.Uint16(b[2:])); p.port == 53 {
			p.protocol = "dns"
			p.name = query(protocol, b)
		}
	case 58:
		p.protocol = "icmp6"
		if len(b) > 0 {
			p.name = map[byte]string{131: "MLD", 132: "MLD", 143: "MLD", 133: "RS", 134: "RA", 135: "NS", 136: "NA"}[b[0]]
		}
	default:
		p.protocol = strconv.Itoa(protocol)
	}
}

// connects is in the place of a name where a connection carries nothing yet.
const connects = "nothing, by TCP"

// query gives the name and type that a DNS query asks for.
func query(protocol int, b []byte) string {
	const udpHead = 8
	switch {
	case protocol == 17 && len(b) > udpHead:
		b = b[udpHead:]
	case protocol == 6 && len(b) >= 20:
		head := int(b[12]>>4) * 4
		if head >= 20 && len(b) == head {
			return connects
		}
		if head < 20 || len(b) < head+2 {
			return ""
		}
		b = b[head+2:] // a length comes before the message
	default:
		return ""
	}
	return question(b)
}

// types are the kinds of records that hosts ask for.
var types = map[uint16]string{
	1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 12: "PTR", 13: "HINFO", 15: "MX", 16: "TXT", 28: "AAAA", 33: "SRV", 64: "SVCB", 65: "HTTPS", 255: "ANY",
}

// question reads the first question of a DNS message.
func question(b []byte) string {
	const head = 12
	if len(b) < head || binary.BigEndian.Uint16(b[4:]) == 0 {
		return ""
	}
	name := ""
	for b = b[head:]; ; {
		if len(b) == 0 || int(b[0]) >= len(b) || b[0] > 63 {
			return ""
		}
		n := int(b[0])
		if n == 0 {
			break
		}
		name += string(b[1:1+n]) + "."
		b = b[1+n:]
	}
	if len(b) < 5 {
		return ""
	}
	kind := binary.BigEndian.Uint16(b[1:])
	text, ok := types[kind]
	if !ok {
		text = fmt.Sprintf("TYPE%d", kind)
	}
	if name == "" {
		name = "."
	}
	return name + " " + text
}

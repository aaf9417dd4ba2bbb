package lab

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
)

// frame makes an ethernet frame from h1 of the lab with index 1.
func frame(kind uint16, payload ...byte) []byte {
	b := []byte{2, 0x99, 0, 0, 1, 1, 2, 0x99, 0, 0, 1, 11}
	return append(binary.BigEndian.AppendUint16(b, kind), payload...)
}

// ip4 makes a packet from 10.99.1.11.
func ip4(protocol byte, to string, carried ...byte) []byte {
	head := make([]byte, 20)
	head[0], head[9] = 0x45, protocol
	copy(head[12:], []byte{10, 99, 1, 11})
	copy(head[16:], netip.MustParseAddr(to).AsSlice())
	return frame(0x0800, append(head, carried...)...)
}

func ip6(protocol byte, to string, carried ...byte) []byte {
	head := make([]byte, 40)
	head[0], head[6] = 0x60, protocol
	copy(head[8:], netip.MustParseAddr("fe80::1").AsSlice())
	copy(head[24:], netip.MustParseAddr(to).AsSlice())
	return frame(0x86dd, append(head, carried...)...)
}

func arp(for4 string) []byte {
	b := make([]byte, 28)
	copy(b[14:], []byte{10, 99, 1, 11})
	copy(b[24:], netip.MustParseAddr(for4).AsSlice())
	return frame(0x0806, b...)
}

// udp makes a datagram to a port; tcp the same behind a head of 20 bytes.
func udp(port uint16, content ...byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0x80, 0}, port)
	return append(append(b, 0, 0, 0, 0), content...)
}

func tcp(port uint16, content ...byte) []byte {
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b[2:], port)
	b[12] = 5 << 4
	return append(b, content...)
}

// dns makes a query.
func dns(kind uint16, labels ...string) []byte {
	b := []byte{0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, l := range labels {
		b = append(append(b, byte(len(l))), l...)
	}
	b = binary.BigEndian.AppendUint16(append(b, 0), kind)
	return append(b, 0, 1)
}

// captured makes a file of frames, as tcpdump writes it.
func captured(frames ...[]byte) []byte {
	order := binary.NativeEndian
	b := order.AppendUint32(nil, magic)
	b = append(b, make([]byte, 16)...)
	b = order.AppendUint32(b, ethernet)
	for _, f := range frames {
		for _, n := range []int{1, 2, len(f), len(f)} {
			b = order.AppendUint32(b, uint32(n))
		}
		b = append(b, f...)
	}
	return b
}

func TestEgressOfFrames(t *testing.T) {
	query := dns(1, "registry", "example", "com")
	tests := []struct {
		name  string
		frame []byte
		want  string // "" is no attempt
		ok    bool   // it is housekeeping
	}{
		{name: "to the internet", frame: ip4(6, "192.0.2.1", tcp(443)...), want: "h1 (10.99.1.11) sent 1 × tcp to 192.0.2.1 port 443"},
		{name: "to another lab", frame: ip4(17, "10.99.2.11", udp(8472)...), want: "h1 (10.99.1.11) sent 1 × udp to 10.99.2.11 port 8472"},
		{name: "to a private range", frame: ip4(1, "10.0.0.1", 8, 0), want: "h1 (10.99.1.11) sent 1 × icmp to 10.0.0.1"},
		{name: "to the internet by IPv6", frame: ip6(6, "2001:db8::1", tcp(80)...), want: "h1 (fe80::1) sent 1 × tcp to 2001:db8::1 port 80"},
		{name: "looks for an outside neighbour", frame: arp("192.0.2.1"), want: "h1 (10.99.1.11) sent 1 × arp to 192.0.2.1"},
		{name: "a rare protocol", frame: ip4(47, "192.0.2.1"), want: "h1 (10.99.1.11) sent 1 × 47 to 192.0.2.1"},
		{
			name: "asks the lab's name server", frame: ip4(17, "10.99.1.1", udp(53, query...)...),
			want: "h1 (10.99.1.11) sent 1 × dns to 10.99.1.1 port 53 asking for registry.example.com. A",
		},
		{
			name: "asks by TCP", frame: ip4(6, "10.99.1.1", tcp(53, append([]byte{0, byte(len(query))}, query...)...)...),
			want: "h1 (10.99.1.11) sent 1 × dns to 10.99.1.1 port 53 asking for registry.example.com. A",
		},
		{
			name: "asks in a form that nobody knows", frame: ip4(17, "10.99.1.1", udp(53, 0xff)...),
			want: "h1 (10.99.1.11) sent 1 × dns to 10.99.1.1 port 53",
		},
		{name: "tells all of a link", frame: ip4(17, "255.255.255.255", udp(67)...), want: "h1 (10.99.1.11) sent 1 × udp to 255.255.255.255 port 67"},
		{name: "tells a group", frame: ip4(17, "224.0.0.251", udp(5353)...), want: "h1 (10.99.1.11) sent 1 × udp to 224.0.0.251 port 5353"},

		{
			name: "CoreDNS's own probe", frame: ip4(17, "10.99.1.1", udp(53, dns(13, "1234567", "987654")...)...), ok: true,
			want: "h1 (10.99.1.11) sent 1 × dns to 10.99.1.1 port 53 asking for 1234567.987654. HINFO",
		},
		{
			name: "CoreDNS looks if the name server lives", frame: ip4(17, "10.99.1.1", udp(53, dns(2)...)...), ok: true,
			want: "h1 (10.99.1.11) sent 1 × dns to 10.99.1.1 port 53 asking for . NS",
		},
		{
			name: "asks a name server outside for the root", frame: ip4(17, "192.0.2.53", udp(53, dns(2)...)...),
			want: "h1 (10.99.1.11) sent 1 × dns to 192.0.2.53 port 53 asking for . NS",
		},
		{
			name: "looks if the lab's name server answers", frame: ip4(6, "10.99.1.1", tcp(53)...), ok: true,
			want: "h1 (10.99.1.11) sent 1 × dns to 10.99.1.1 port 53 asking for nothing, by TCP",
		},
		{
			name: "looks if another name server answers", frame: ip4(6, "192.0.2.53", tcp(53)...),
			want: "h1 (10.99.1.11) sent 1 × dns to 192.0.2.53 port 53 asking for nothing, by TCP",
		},
		{
			name: "no probe of CoreDNS's", frame: ip4(17, "10.99.1.1", udp(53, dns(13, "1234567", "com")...)...),
			want: "h1 (10.99.1.11) sent 1 × dns to 10.99.1.1 port 53 asking for 1234567.com. HINFO",
		},
		{name: "finds routers", frame: ip6(58, "ff02::2", 133, 0), ok: true, want: "h1 (fe80::1) sent 1 × icmp6 to ff02::2 asking for RS"},
		{name: "joins a group", frame: ip6(0, "ff02::16", 58, 0, 5, 2, 0, 0, 1, 0, 143, 0), ok: true, want: "h1 (fe80::1) sent 1 × icmp6 to ff02::16 asking for MLD"},
		{name: "joins a group by IPv4", frame: ip4(2, "224.0.0.22", 0x22), ok: true, want: "h1 (10.99.1.11) sent 1 × igmp to 224.0.0.22"},

		{name: "to a neighbour", frame: ip4(6, "10.99.1.12", tcp(22)...)},
		{name: "to the gateway", frame: ip4(1, "10.99.1.1", 8, 0)},
		{name: "looks for a neighbour", frame: arp("10.99.1.12")},
		{name: "to a neighbour by IPv6", frame: ip6(6, "fd99:0:0:1::c", tcp(22)...)},
		{name: "neither IP nor ARP", frame: frame(0x88cc, 1, 2, 3)},
		{name: "cut short", frame: ip4(6, "192.0.2.1")[:30]},
	}
	l := &Lab{Index: 1}
	if err := l.addHosts(2, nil); err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			packets, err := parseCapture(captured(test.frame))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := l.sort(packets)
			if test.want == "" {
				if len(got) > 0 {
					t.Fatalf("got %s, want no attempt", got[0])
				}
				return
			}
			if len(got) != 1 || got[0].String() != test.want || (got[0].Allowed != "") != test.ok {
				t.Fatalf("got %s, allowed %v; want %s, allowed %v", got, got[0].Allowed, test.want, test.ok)
			}
			if left := Left(got); (len(left) == 0) != test.ok {
				t.Errorf("%d attempts are left", len(left))
			}
		})
	}
}

func TestCaptureThatIsBeingWritten(t *testing.T) {
	whole := captured(ip4(6, "192.0.2.1", tcp(443)...), arp("192.0.2.1"))
	for n := range whole {
		packets, err := parseCapture(whole[:n])
		if err != nil || len(packets) > 1 {
			t.Fatalf("of the first %d bytes: %d packets, %v", n, len(packets), err)
		}
	}
	if packets, err := parseCapture(whole); err != nil || len(packets) != 2 {
		t.Fatalf("%d packets, %v", len(packets), err)
	}
	if _, err := parseCapture(slices.Concat([]byte("not a capture at all"), whole)); err == nil {
		t.Error("something else was read as a capture")
	}
}

func FuzzCapture(f *testing.F) {
	f.Add(captured(ip4(6, "192.0.2.1", tcp(443)...), arp("192.0.2.1"), ip6(0, "ff02::16", 58, 0, 5, 2, 0, 0, 1, 0, 143, 0)))
	f.Add(captured(ip4(17, "10.99.1.1", udp(53, dns(1, "registry", "example", "com")...)...)))
	l := &Lab{Index: 1}
	if err := l.addHosts(1, nil); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		packets, err := parseCapture(raw)
		if err != nil {
			return
		}
		all, outside := l.sort(packets)
		sum := 0
		for _, a := range all {
			sum += a.Packets
		}
		if sum > len(packets) || outside > len(packets) {
			t.Errorf("%d packets became %d in attempts, %d for outside", len(packets), sum, outside)
		}
	})
}

package runner

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// parseInterfaces parses `ip -o link show` and `ip -o addr show`.
func parseInterfaces(links, addresses []string) []Interface {
	byName := map[string]*Interface{}
	for _, l := range links {
		// 2: eth0@if7: <BROADCAST,UP,LOWER_UP> mtu 1500 … link/ether 52:54:00:12:34:56 brd …
		f := strings.Fields(l)
		if len(f) < 3 {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(f[1], ":"), "@")
		i := &Interface{Name: name, MTU: int(number(after(f, "mtu"))), MAC: after(f, "link/ether")}
		i.Up = slices.Contains(strings.Split(strings.Trim(f[2], "<>"), ","), "UP")
		byName[name] = i
	}
	for _, l := range addresses {
		// 2: eth0    inet 192.168.6.2/24 brd 192.168.6.255 scope global eth0\ …
		f := strings.Fields(l)
		if len(f) < 4 || f[2] != "inet" && f[2] != "inet6" {
			continue
		}
		name, _, _ := strings.Cut(f[1], "@")
		p, err := prefix(f[3])
		if err != nil {
			continue
		}
		if byName[name] == nil {
			byName[name] = &Interface{Name: name}
		}
		byName[name].Addresses = append(byName[name].Addresses, p)
	}
	var out []Interface
	for _, i := range byName {
		out = append(out, *i)
	}
	slices.SortFunc(out, func(a, b Interface) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// prefix parses an address with or without a prefix length.
func prefix(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		return netip.ParsePrefix(s)
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// after returns the word that follows key.
func after(words []string, key string) string {
	if i := slices.Index(words, key); i >= 0 && i+1 < len(words) {
		return words[i+1]
	}
	return ""
}

// parseRoute returns the interface of the default route with the lowest metric.
func parseRoute(lines []string) string {
	dev, best := "", int64(-1)
	for _, l := range lines {
		f := strings.Fields(l)
		if len(f) == 0 || f[0] != "default" {
			continue
		}
		if m := number(after(f, "metric")); best < 0 || m < best {
			if d := after(f, "dev"); d != "" {
				dev, best = d, m
			}
		}
	}
	return dev
}

// parseDisks parses `df -PT -k` and `df -Pi`. Mount points may contain spaces; the other
// columns do not. A device that is mounted several times has one entry per mount point.
func parseDisks(blocks, inodes []string) []Disk {
	byMount := map[string]Disk{}
	for _, l := range blocks {
		f, mount := columns(l, 6)
		if f == nil || !strings.HasPrefix(mount, "/") {
			continue
		}
		byMount[mount] = Disk{Mount: mount, Device: f[0], Type: f[1], Size: kib(f[2]), Free: kib(f[4])}
	}
	for _, l := range inodes {
		f, mount := columns(l, 5)
		if d, ok := byMount[mount]; ok && f != nil {
			d.Inodes, d.InodesFree = number(f[1]), number(f[3])
			byMount[mount] = d
		}
	}
	var out []Disk
	for _, d := range byMount {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b Disk) int { return cmp.Compare(a.Mount, b.Mount) })
	return out
}

// columns returns the first n words of a line, and the rest of it.
func columns(l string, n int) ([]string, string) {
	f := strings.Fields(l)
	if len(f) <= n {
		return nil, ""
	}
	rest := l
	for _, w := range f[:n] {
		rest = strings.TrimLeft(rest[strings.Index(rest, w)+len(w):], " \t")
	}
	return f[:n], rest
}

// parsePorts parses `ss -Hlntup`, or the concatenation of /proc/net/{tcp,tcp6,udp,udp6}.
func parsePorts(lines []string) []Port {
	var out []Port
	files := 0 // headings of /proc/net seen so far
	for _, l := range lines {
		f := strings.Fields(l)
		switch {
		case strings.HasPrefix(l, "sl "):
			files++
		case files > 0:
			if p, ok := parseProcPort(f, files > 2); ok {
				out = append(out, p)
			}
		default:
			if p, ok := parseSSPort(f); ok {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port), a.Address.Compare(b.Address), cmp.Compare(a.PID, b.PID))
	})
	return slices.Compact(out)
}

// parseSSPort parses the fields of
//
//	tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=612,fd=3))
func parseSSPort(f []string) (Port, bool) {
	if len(f) < 5 || f[0] != "tcp" && f[0] != "udp" {
		return Port{}, false
	}
	i := strings.LastIndexByte(f[4], ':')
	if i < 0 {
		return Port{}, false
	}
	n, err := strconv.ParseUint(f[4][i+1:], 10, 16)
	if err != nil {
		return Port{}, false
	}
	host, _, _ := strings.Cut(strings.Trim(f[4][:i], "[]"), "%") // 127.0.0.53%lo
	p := Port{Proto: f[0], Port: uint16(n)}
	if host == "*" {
		p.Address = netip.IPv6Unspecified()
	} else if p.Address, err = netip.ParseAddr(host); err != nil {
		return Port{}, false
	}
	if len(f) > 6 {
		if _, rest, ok := strings.Cut(f[6], `(("`); ok {
			p.Process, rest, _ = strings.Cut(rest, `"`)
			if _, pid, ok := strings.Cut(rest, "pid="); ok {
				pid, _, _ = strings.Cut(pid, ",")
				p.PID = int(min(number(pid), 1<<31))
			}
		}
	}
	return p, true
}

// parseProcPort parses the fields of
//
//	0: 00000000:0016 00000000:0000 0A …
//
// where 0A is LISTEN. A UDP socket counts as listening if it has no peer.
func parseProcPort(f []string, udp bool) (Port, bool) {
	if len(f) < 4 {
		return Port{}, false
	}
	p := Port{Proto: "tcp"}
	if udp {
		p.Proto = "udp"
	}
	if !udp && f[3] != "0A" || udp && !strings.HasSuffix(f[2], ":0000") {
		return Port{}, false
	}
	host, port, ok := strings.Cut(f[1], ":")
	n, err := strconv.ParseUint(port, 16, 16)
	b, herr := hex.DecodeString(host)
	if !ok || err != nil || herr != nil || len(b) != 4 && len(b) != 16 {
		return Port{}, false
	}
	// Each group of four bytes is a number in the host's byte order: little-endian on all
	// supported platforms.
	for w := range slices.Chunk(b, 4) {
		binary.BigEndian.PutUint32(w, binary.LittleEndian.Uint32(w))
	}
	addr, _ := netip.AddrFromSlice(b)
	p.Address, p.Port = addr, uint16(n)
	return p, true
}

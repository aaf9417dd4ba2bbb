package conntest

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Machine are the facts that a Sim reports about itself.
type Machine struct {
	OSRelease string // the text of /etc/os-release
	Machine   string // as uname -m
	Kernel    string
	CPUs      int
	MemoryMiB int
	Addresses []string // of eth0, with prefix length: 192.0.2.11/24
	Swap      bool
	CgroupV2  bool
	SELinux   string // Enforcing, Permissive, Disabled; empty: none
	Packages  string // apt-get, dnf, yum, zypper
	FreeMiB   int    // free space of the root disk, whose size is twice that
	// Mounts are further disks: free MiB by mount point.
	Mounts map[string]int
	// InodesFree are the free inodes of the disks; 0 means enough, a negative value none.
	InodesFree int
	// MAC, MachineID and ProductUUID are derived from the host name if they are empty.
	MAC, MachineID, ProductUUID string
	MTU                         int // of eth0; 0 means 1500
	NoRoute                     bool
	Firewalls                   []string // the active ones
	// Resolv is the text of /etc/resolv.conf; NoResolv means that the file does not exist.
	Resolv   string
	NoResolv bool
	// HostnameAddresses are the addresses of the host name in /etc/hosts.
	HostnameAddresses []string
	TimeServices      []string // active units: chrony.service
	Processes         []string // "712 kubelet"
	NoCommands        []string // missing commands
	Held              []string // held packages
	// ClockAhead is how far the host's clock is ahead.
	ClockAhead time.Duration
	// Ports are lines as ss -Hlntup prints them.
	Ports []string
}

// DefaultMachine is a small Debian 12.
func DefaultMachine() Machine {
	return Machine{
		OSRelease: `PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
NAME="Debian GNU/Linux"
VERSION_ID="12"
VERSION_CODENAME=bookworm
ID=debian
`,
		Machine: "x86_64", Kernel: "6.1.0-28-amd64", CPUs: 4, MemoryMiB: 8192,
		Addresses: []string{"192.0.2.11/24"}, CgroupV2: true, Packages: "apt-get", FreeMiB: 50 << 10,
		Resolv: "nameserver 192.0.2.1\n", TimeServices: []string{"chrony.service"},
		Ports: []string{`tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(("sshd",pid=612,fd=3))`},
	}
}

// SetMachine changes the facts that the host reports about itself.
func (s *Sim) SetMachine(change func(*Machine)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.machine)
}

// SetHostname sets the host name.
func (s *Sim) SetHostname(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hostname = name
	s.files.put("/etc/hostname", &File{Mode: 0o644, Data: []byte(name + "\n")})
}

// facts prints what scriptFacts of the runner does.
func (s *Sim) facts() string {
	m := s.machine
	var b strings.Builder
	section := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "\n==> %s\n", name)
		if text := fmt.Sprintf(format, args...); text != "" {
			b.WriteString(strings.TrimSuffix(text, "\n") + "\n")
		}
	}
	var addrs strings.Builder
	for _, a := range m.Addresses {
		family := "inet"
		if strings.Contains(a, ":") {
			family = "inet6"
		}
		fmt.Fprintf(&addrs, "2: eth0    %s %s scope global eth0\\       valid_lft forever preferred_lft forever\n", family, a)
	}
	swaps, swapTotal := "", 0
	if m.Swap {
		swaps, swapTotal = "/dev/vdb partition 1048572 0 -2", 1048572
	}
	cgroup := "tmpfs"
	if m.CgroupV2 {
		cgroup = "cgroup2fs"
	}
	now := time.Now().Add(m.ClockAhead)
	section("os-release", "%s", m.OSRelease)
	section("machine", "%s", m.Machine)
	section("kernel", "%s", m.Kernel)
	section("hostname", "%s", s.hostname)
	own := digest([]byte(s.hostname))
	section("machine-id", "%s", cmp.Or(m.MachineID, own[:32]))
	section("product-uuid", "%s", cmp.Or(m.ProductUUID, digest([]byte("uuid" + s.hostname))[:36]))
	section("boot-id", "%s", s.bootID())
	section("cpus", "%d", m.CPUs)
	section("meminfo", "MemTotal: %d kB\nMemAvailable: %d kB\nSwapTotal: %d kB", m.MemoryMiB<<10, m.MemoryMiB<<9, swapTotal)
	section("swaps", "Filename Type Size Used Priority\n%s", swaps)
	section("addresses", "1: lo    inet 127.0.0.1/8 scope host lo\n%s", addrs.String())
	section("links", "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 link/loopback 00:00:00:00:00:00\n2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu %d link/ether %s",
		cmp.Or(m.MTU, 1500), cmp.Or(m.MAC, fmt.Sprintf("52:54:00:%s:%s:%s", own[:2], own[2:4], own[4:6])))
	route := "default via 192.0.2.1 dev eth0"
	if m.NoRoute {
		route = ""
	}
	section("route4", "%s", route)
	section("route6", "")
	section("cgroup", "%s", cgroup)
	section("selinux", "%s", m.SELinux)
	section("init", "systemd\nrunning")
	section("systemd", "systemd 252 (252.38-1~deb12u1)")
	section("time", "%d.%09d\n+0000", now.Unix(), now.Nanosecond())
	disks, inodes := m.disks()
	section("disks", "%s", disks)
	section("inodes", "%s", inodes)
	section("resolv-link", "/etc/resolv.conf")
	if m.NoResolv {
		section("resolv", "")
		section("resolv-file", "")
	} else {
		section("resolv", "%s", m.Resolv)
		section("resolv-file", "there")
	}
	section("packages", "/usr/bin/%s", m.Packages)
	section("firewall", "%s", strings.Join(m.Firewalls, "\n"))
	section("virt", "kvm")
	section("user", "root\n0")
	s.nodeFacts(section)
	section("ports", "%s", strings.Join(m.Ports, "\n"))
	section("end", "")
	return b.String()
}

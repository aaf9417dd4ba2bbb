package runner

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
)

// Facts are the properties of a host, as it reports them. A property that the host does
// not report has its zero value.
type Facts struct {
	OS          OSRelease
	Machine     string // as uname -m: x86_64, aarch64
	Arch        string // as Go and Kubernetes: amd64, arm64
	Kernel      string // as uname -r
	Hostname    string
	MachineID   string
	ProductUUID string // root only
	BootID      string
	CPUs        int
	Memory      int64 // bytes
	Available   int64 // available memory in bytes, as MemAvailable of /proc/meminfo
	Swaps       []string
	Interfaces  []Interface // sorted by name
	Default     string      // the interface of the default route; the IPv4 one first
	CgroupV2    bool
	SELinux     string // enforcing, permissive, disabled; empty: the kernel has none
	AppArmor    bool
	Init        string // the name of process 1
	Systemd     int    // its version; 0 if it does not run
	Time        time.Time
	TimeZone    string // offset, +0000
	Disks       []Disk // sorted by mount point
	Resolv      Resolv
	PackageTool string   // apt-get, dnf, yum, zypper; empty: none of them
	Firewalls   []string // the active ones of firewalld, ufw, nftables
	Virt        string   // as systemd-detect-virt; none is bare metal
	User        string   // the user that collected the facts
	UID         int
	Ports       []Port        // listening ports, sorted
	ClockOffset time.Duration // how far the host's clock is ahead of the workdir host's at least; 0 if they may agree

	HostnameAddresses []netip.Addr           // addresses of the host name in /etc/hosts
	Units             []UnitFact             // kubelet and time synchronization services, if they exist
	Processes         []ProcessFact          // of Kubernetes components, by PID
	Traces            []string               // files of a Kubernetes installation: below /etc/kubernetes, /var/lib/kubelet, /etc/cni/net.d, /var/lib/cni
	Modules           map[string]ModuleState // kernel modules that nodes may require
	Commands          []string               // the existing ones of the commands that nodes may require
	Sysctls           map[string]string      // by key, with dots
	SysctlFiles       []SysctlLine           // network settings in sysctl files, unsorted
	Held              []string               // packages that are held at their version
}

// UnitFact is a systemd unit.
type UnitFact struct {
	Name   string // kubelet.service
	Path   string // of the unit file
	Active bool
}

// ProcessFact is a process. Its Name is truncated to 15 bytes, as in /proc/PID/comm.
type ProcessFact struct {
	PID  int
	Name string
}

// SysctlLine is one setting in one file.
type SysctlLine struct {
	File, Key, Value string // the key with dots
}

// After reports whether systemd-sysctl applies l after the file of that name in
// /etc/sysctl.d. It orders files by name, regardless of their folder, and reads only the
// sysctl.d folders: /etc/sysctl.conf applies only if one of them links to it.
func (l SysctlLine) After(name string) bool {
	return l.File != "/etc/sysctl.conf" && path.Base(l.File) > name
}

// OSRelease is the part of os-release(5) that kubexm uses.
type OSRelease struct {
	ID, VersionID, Pretty string
	Like                  []string // ID_LIKE
	Codename              string
}

// Interface is a network interface with its addresses.
type Interface struct {
	Name      string
	MTU       int
	Up        bool
	MAC       string
	Addresses []netip.Prefix
}

// Disk is a mounted file system that is not stored in memory.
type Disk struct {
	Mount, Device, Type string
	Size, Free          int64 // bytes; Free is available to unprivileged users
	Inodes, InodesFree  int64 // 0: the file system has no fixed number
}

// Resolv is how the host resolves names.
type Resolv struct {
	Path        string // /etc/resolv.conf with links resolved
	Kind        string // file, systemd-resolved-stub, systemd-resolved, networkmanager, resolvconf
	Missing     bool   // /etc/resolv.conf does not exist
	Nameservers []string
	Upstream    []string // the name servers that systemd-resolved queries
	Search      []string
}

// Port is a listening port.
type Port struct {
	Proto   string // tcp or udp
	Address netip.Addr
	Port    uint16
	Process string // empty if unknown
	PID     int
}

// Facts collects the facts of the host with one command.
func (r *Runner) Facts(ctx context.Context) (Facts, error) {
	began := time.Now()
	res, err := r.script(ctx, connector.VerbFacts, scriptFacts, nil)
	if err != nil {
		return Facts{}, err
	}
	took := time.Since(began)
	f, err := ParseFacts(res.Stdout)
	if err != nil {
		return Facts{}, err
	}
	if !f.Time.IsZero() {
		f.ClockOffset = clockOffset(f.Time, began, took)
	}
	return f, nil
}

// clockOffset returns how far a clock is ahead at least that was read at some moment of the time
// that an answer took: 0 if the clocks may agree. A host under load takes seconds to answer, which
// says nothing about its clock.
func clockOffset(read, began time.Time, took time.Duration) time.Duration {
	var off time.Duration
	switch ended := began.Add(took); {
	case read.Before(began):
		off = read.Sub(began)
	case read.After(ended):
		off = read.Sub(ended)
	}
	return off.Round(time.Millisecond)
}

// Platform returns the platform by which files of the bundle are selected.
func (f Facts) Platform() manifest.Platform {
	return manifest.Platform{OS: "linux", Arch: f.Arch}
}

// Disk returns the file system that contains path. It returns false if there is none.
func (f Facts) Disk(path string) (Disk, bool) {
	var best Disk
	for _, d := range f.Disks {
		if within(path, d.Mount) && len(d.Mount) > len(best.Mount) {
			best = d
		}
	}
	return best, best.Mount != ""
}

// Listening returns the listeners of a port.
func (f Facts) Listening(proto string, port uint16) []Port {
	return slices.DeleteFunc(slices.Clone(f.Ports), func(p Port) bool { return p.Proto != proto || p.Port != port })
}

// Interface returns the interface of that name.
func (f Facts) Interface(name string) (Interface, bool) {
	for _, i := range f.Interfaces {
		if i.Name == name {
			return i, true
		}
	}
	return Interface{}, false
}

// InterfaceOf returns the interface that has the address a.
func (f Facts) InterfaceOf(a netip.Addr) (Interface, bool) {
	for _, i := range f.Interfaces {
		if slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr() == a }) {
			return i, true
		}
	}
	return Interface{}, false
}

func within(path, mount string) bool {
	if mount == "/" {
		return true
	}
	return path == mount || len(path) > len(mount) && path[:len(mount)] == mount && path[len(mount)] == '/'
}

// goArch returns Go's name of the architecture that uname -m prints.
func goArch(machine string) string {
	switch machine {
	case "x86_64", "amd64":
		return "amd64"
	case "aarch64", "arm64":
		return "arm64"
	case "armv7l", "armv6l":
		return "arm"
	case "i386", "i686":
		return "386"
	case "loongarch64":
		return "loong64"
	}
	return machine // ppc64le, s390x, riscv64 have the same name
}

func (o OSRelease) String() string { return fmt.Sprintf("%s %s", o.ID, o.VersionID) }

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

// Facts is what a host is, as it says itself. What it did not say is the zero value.
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
	Available   int64 // bytes of memory that can be had
	Swaps       []string
	Interfaces  []Interface // sorted by name
	Default     string      // the interface of the default route; the IPv4 one first
	CgroupV2    bool
	SELinux     string // enforcing, permissive, disabled; empty: the kernel has none
	AppArmor    bool
	Init        string // the name of process 1
	Systemd     int    // its version; 0 where it does not run
	Time        time.Time
	TimeZone    string // offset, +0000
	Disks       []Disk // sorted by mount point
	Resolv      Resolv
	PackageTool string   // apt-get, dnf, yum, zypper; empty: none of them
	Firewalls   []string // active ones: firewalld, ufw, nftables
	Virt        string   // as systemd-detect-virt; none is bare metal
	User        string   // as whom this was asked
	UID         int
	Ports       []Port        // that something listens on, sorted
	ClockOffset time.Duration // how far the clock is ahead of this machine's

	HostnameAddresses []netip.Addr           // what /etc/hosts says of the host name
	Units             []UnitFact             // of kubelet and of those that keep the time, where they exist
	Processes         []ProcessFact          // of a Kubernetes, by PID
	Traces            []string               // files of a Kubernetes: below /etc/kubernetes, /var/lib/kubelet, /etc/cni/net.d, /var/lib/cni
	Modules           map[string]ModuleState // that nodes may need
	Commands          []string               // of those that nodes may need, the ones that there are
	Sysctls           map[string]string      // by key, with dots
	SysctlFiles       []SysctlLine           // what files set of the network's, in no order
	Held              []string               // packages that are kept from changes
}

// UnitFact is a unit of systemd.
type UnitFact struct {
	Name   string // kubelet.service
	Path   string // of its file
	Active bool
}

// ProcessFact is a process by its short name, of 15 bytes at most.
type ProcessFact struct {
	PID  int
	Name string
}

// SysctlLine is one setting in one file.
type SysctlLine struct {
	File, Key, Value string // the key with dots
}

// After tells whether systemd-sysctl takes l in after what the file of that name in
// /etc/sysctl.d sets: by the files' names, wherever they lie. It reads no other
// folder: /etc/sysctl.conf counts where a distribution has a link to it in one.
func (l SysctlLine) After(name string) bool {
	return l.File != "/etc/sysctl.conf" && path.Base(l.File) > name
}

// OSRelease is the part of os-release that matters here.
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

// Disk is a mounted file system that is not in memory.
type Disk struct {
	Mount, Device, Type string
	Size, Free          int64 // bytes; Free is what an ordinary user may take
	Inodes, InodesFree  int64 // 0: the file system has no fixed number
}

// Resolv is how the host resolves names.
type Resolv struct {
	Path        string // what /etc/resolv.conf really is
	Kind        string // file, systemd-resolved-stub, systemd-resolved, networkmanager, resolvconf
	Missing     bool   // there is no such file
	Nameservers []string
	Real        []string // behind systemd-resolved: those that it asks
	Search      []string
}

// Port is a port that something listens on.
type Port struct {
	Proto   string // tcp or udp
	Address netip.Addr
	Port    uint16
	Process string // where the host tells it
	PID     int
}

// Facts asks the host what it is, in one command.
func (r *Runner) Facts(ctx context.Context) (Facts, error) {
	asked := time.Now()
	res, err := r.script(ctx, connector.VerbFacts, scriptFacts, nil)
	if err != nil {
		return Facts{}, err
	}
	took := time.Since(asked)
	f, err := ParseFacts(res.Stdout)
	if err != nil {
		return Facts{}, err
	}
	if !f.Time.IsZero() {
		// The host looked at its clock about half way through.
		f.ClockOffset = f.Time.Sub(asked.Add(took / 2)).Round(time.Millisecond)
	}
	return f, nil
}

// Platform gives the platform that the bundle's files are chosen by.
func (f Facts) Platform() manifest.Platform {
	return manifest.Platform{OS: "linux", Arch: f.Arch}
}

// Disk gives the file system that path lies on.
func (f Facts) Disk(path string) (Disk, bool) {
	var best Disk
	for _, d := range f.Disks {
		if within(path, d.Mount) && len(d.Mount) > len(best.Mount) {
			best = d
		}
	}
	return best, best.Mount != ""
}

// Listening gives what listens on a port.
func (f Facts) Listening(proto string, port uint16) []Port {
	return slices.DeleteFunc(slices.Clone(f.Ports), func(p Port) bool { return p.Proto != proto || p.Port != port })
}

// Interface gives an interface by name.
func (f Facts) Interface(name string) (Interface, bool) {
	for _, i := range f.Interfaces {
		if i.Name == name {
			return i, true
		}
	}
	return Interface{}, false
}

// InterfaceOf gives the interface that has an address.
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

// goArch gives Go's name of what uname -m says.
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

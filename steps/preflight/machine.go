package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/versions"
)

// Minimum and recommended resources of a node. The minimum is kubeadm's own limit
// (ControlPlaneNumCPU and ControlPlaneMem in its constants), and for workers what a
// kubelet with a few pods uses. kubexm recommends 4 GB for a master and 2 GB for a
// worker. A machine of that size reports less, because its kernel reserves a part: an
// eighth may be missing.
const (
	minCPUs            = 2
	leastMasterMemory  = 1700 << 20
	leastWorkerMemory  = 700 << 20
	wantedMasterMemory = 4 << 30 / 8 * 7
	wantedWorkerMemory = 2 << 30 / 8 * 7
)

// The oldest supported kernels: kubexm's own limit, and the one that kubeadm's system
// verification requires since 1.32. From 1.34 on it only warns (kubernetes #131919).
var (
	leastKernel  = semver.MustParse("3.10.0")
	wantedKernel = semver.MustParse("4.19.0")
	// nftablesKernel is the kernel that kube-proxy requires in mode nftables (proxier.go
	// of its package nftables).
	nftablesKernel = semver.MustParse("5.13.0")
)

func machineChecks() []Check {
	return []Check{
		{
			Name: "preflight.operating-system", Question: "whether the distribution and its release are supported, and systemd is process 1", Levels: "error, warning",
			Limits: "the table in versions/supported.yaml; a release includes its minor versions; only a warning if spec.bundle.operatingSystems lists the system", Reads: "ID and VERSION_ID of /etc/os-release, /proc/1/comm", Source: "versions/supported.yaml",
			look: checkSystem,
		},
		{
			Name: "preflight.architecture", Question: "whether the processor has the architecture of the config", Levels: "error",
			Limits: "arch of the host in spec.hosts", Reads: "uname -m", Source: "the bundle's programs are built for that architecture",
			look: byFacts(checkArchitecture),
		},
		{
			Name: "preflight.processors", Question: "whether the host has enough processors", Levels: "error on masters, warning on workers", On: OnNodes,
			Limits: fmt.Sprintf("%d", minCPUs), Reads: "getconf _NPROCESSORS_ONLN", Source: "kubeadm refuses a master with fewer; kubexm recommends the same for a worker",
			look: byFacts(checkProcessors),
		},
		{
			Name: "preflight.memory", Question: "whether the host has enough memory", Levels: "error, warning", On: OnNodes,
			Limits: fmt.Sprintf("error under %d MiB on a master and %d MiB on a worker, warning under %d MiB and %d MiB",
				leastMasterMemory>>20, leastWorkerMemory>>20, wantedMasterMemory>>20, wantedWorkerMemory>>20),
			Reads: "MemTotal of /proc/meminfo", Source: "kubeadm refuses a master with less than 1700 MB; kubexm recommends 4 GB and 2 GB, of which the kernel may reserve an eighth",
			look: byFacts(checkMemory),
		},
		{
			Name: "preflight.kernel", Question: "whether the kernel is new enough", Levels: "error, warning",
			Limits: fmt.Sprintf("error before %s, before %s for Kubernetes 1.32 and 1.33, and before %s with kube-proxy's mode nftables; warning before %[2]s", leastKernel, wantedKernel, nftablesKernel),
			Reads:  "uname -r", Source: "kubeadm's system verification, which only warns since 1.34; kube-proxy; the oldest release is kubexm's own limit",
			look: byFacts(checkKernel),
		},
		{
			Name: "preflight.cgroups", Question: "whether this Kubernetes version supports the host's cgroup version", Levels: "warning", On: OnNodes,
			Limits: "warning for cgroup v1 from Kubernetes 1.31 on", Reads: "the type of /sys/fs/cgroup", Source: "cgroup v1 is in maintenance mode since 1.31; a kubelet of 1.35 or newer refuses it by default, and kubexm lets it start (failCgroupV1: false)",
			look: byFacts(checkCgroups),
		},
	}
}

func checkSystem(_ context.Context, h *steps.Host, _ Options) (steps.Findings, error) {
	var out steps.Findings
	all, err := versions.Supported()
	if err != nil {
		return nil, err
	}
	var names []string
	supported := false
	for _, s := range all {
		names = append(names, s.String())
		supported = supported || s.Is(h.Facts.OS.ID, h.Facts.OS.VersionID)
	}
	if !supported {
		what := fmt.Sprintf("the operating system %q is not supported", h.Facts.OS)
		if h.Facts.OS.ID == "" {
			what = "/etc/os-release does not name the operating system"
		}
		f := steps.Finding{What: what, Advice: "install a supported one: " + strings.Join(names, "; ")}
		if slices.ContainsFunc(h.Cluster.Spec.Bundle.OperatingSystems, func(s manifest.OperatingSystem) bool {
			return s.Name == h.Facts.OS.ID && slices.Contains(s.Releases, h.Facts.OS.VersionID)
		}) { // the config's author takes responsibility
			f.What, f.Warning = what+", but the config lists it", true
		}
		out = append(out, f)
	}
	if h.Facts.Systemd == 0 {
		out = append(out, steps.Finding{What: "process 1 is " + h.Facts.Init + ", not systemd", Advice: "install a distribution with systemd"})
	}
	return out, nil
}

func checkArchitecture(h *steps.Host) steps.Findings {
	if h.Facts.Arch == h.Arch {
		return nil
	}
	return steps.Findings{{What: fmt.Sprintf("the architecture is %s, but the config has %s", h.Facts.Arch, h.Arch), Advice: "set arch of this host in spec.hosts, and build the bundle again"}}
}

func checkProcessors(h *steps.Host) steps.Findings {
	if h.Facts.CPUs >= minCPUs {
		return nil
	}
	return steps.Findings{{What: fmt.Sprintf("has %d processor; a %s needs at least %d", h.Facts.CPUs, role(h), minCPUs), Advice: "assign more processors to the machine", Warning: !master(h)}}
}

func checkMemory(h *steps.Host) steps.Findings {
	least, wanted := int64(leastWorkerMemory), int64(wantedWorkerMemory)
	if master(h) {
		least, wanted = leastMasterMemory, wantedMasterMemory
	}
	switch m := h.Facts.Memory; {
	case m < least:
		return steps.Findings{{What: fmt.Sprintf("has %d MiB of memory; a %s needs at least %d MiB", m>>20, role(h), least>>20), Advice: "assign more memory to the machine"}}
	case m < wanted:
		return steps.Findings{{What: fmt.Sprintf("has %d MiB of memory; a %s should have %d MiB", m>>20, role(h), wanted>>20), Advice: "assign more memory to the machine before it runs pods", Warning: true}}
	}
	return nil
}

func checkKernel(h *steps.Host) steps.Findings {
	k := kernel(h.Facts.Kernel)
	switch {
	case k == nil: // a custom kernel, whose release cannot be compared
		return nil
	case k.LessThan(leastKernel):
		return steps.Findings{{What: "kernel " + h.Facts.Kernel + " is too old", Advice: "install kernel " + wantedKernel.String() + " or newer"}}
	case node(h) && h.Cluster.Spec.Kubernetes.KubeProxy.Mode == "nftables" && k.LessThan(nftablesKernel):
		return steps.Findings{{What: "kernel " + h.Facts.Kernel + " is too old for kube-proxy's mode nftables", Advice: "install kernel " + nftablesKernel.String() + " or newer, or set spec.kubernetes.kubeProxy.mode to iptables"}}
	case !k.LessThan(wantedKernel):
		return nil
	}
	if v := minor(h.Cluster); node(h) && (v == 32 || v == 33) {
		return steps.Findings{{What: fmt.Sprintf("kernel %s is too old for kubeadm %s", h.Facts.Kernel, h.Cluster.Spec.Kubernetes.Version), Advice: "install kernel " + wantedKernel.String() + " or newer, or choose another Kubernetes version"}}
	}
	return steps.Findings{{What: "kernel " + h.Facts.Kernel + " is older than the kernels that Kubernetes is tested with", Advice: "install kernel " + wantedKernel.String() + " or newer if possible", Warning: true}}
}

// kernel parses the numbers at the start of a kernel's release; nil if there are none.
func kernel(release string) *semver.Version {
	end := strings.IndexFunc(release, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(release)
	}
	v, err := semver.NewVersion(strings.Trim(release[:end], "."))
	if err != nil {
		return nil
	}
	return v
}

func checkCgroups(h *steps.Host) steps.Findings {
	v := minor(h.Cluster)
	if h.Facts.CgroupV2 || v < 31 {
		return nil
	}
	what := fmt.Sprintf("uses cgroup v1, which is in maintenance mode in Kubernetes %s", h.Cluster.Spec.Kubernetes.Version)
	if v >= 35 {
		what = fmt.Sprintf("uses cgroup v1, which Kubernetes %s refuses by default; kubexm sets failCgroupV1: false", h.Cluster.Spec.Kubernetes.Version)
	}
	return steps.Findings{{What: what, Advice: "boot with systemd.unified_cgroup_hierarchy=1, or install a newer release of the distribution", Warning: true}}
}

// minor returns the second number of the cluster's Kubernetes version.
func minor(c *manifest.Cluster) uint64 {
	v, err := semver.NewVersion(c.Spec.Kubernetes.Version)
	if err != nil {
		return 0 // the config was checked
	}
	return v.Minor()
}

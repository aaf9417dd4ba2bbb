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

// What a node has to have. The least is kubeadm's own limit (ControlPlaneNumCPU and
// ControlPlaneMem in its constants), and for workers what a kubelet with a few pods
// takes. The wanted figures are the deployment matrix's: 4 GB for a master and 2 GB
// for a worker. A machine of that size tells less, for its kernel keeps a part: an
// eighth is let go.
const (
	minCPUs            = 2
	leastMasterMemory  = 1700 << 20
	leastWorkerMemory  = 700 << 20
	wantedMasterMemory = 4 << 30 / 8 * 7
	wantedWorkerMemory = 2 << 30 / 8 * 7
)

// The oldest kernels: the deployment matrix's, and the one that kubeadm's system
// verification asks for since 1.32. From 1.34 on it only warns (kubernetes #131919).
var (
	leastKernel  = semver.MustParse("3.10.0")
	wantedKernel = semver.MustParse("4.19.0")
	// nftablesKernel is what kube-proxy asks for in mode nftables (proxier.go of its
	// package nftables).
	nftablesKernel = semver.MustParse("5.13.0")
)

func machineChecks() []Check {
	return []Check{
		{
			Name: "preflight.operating-system", Asks: "whether the distribution and its release are supported, and systemd is process 1", Levels: "error, warning",
			Limits: "the table in versions/supported.yaml; a release stands for its minor versions; a warning where spec.bundle.operatingSystems names another", Reads: "ID and VERSION_ID of /etc/os-release, /proc/1/comm", Source: "the deployment matrix",
			look: checkSystem,
		},
		{
			Name: "preflight.architecture", Asks: "whether the processor is of the architecture that the config says", Levels: "error",
			Limits: "arch of the host in spec.hosts", Reads: "uname -m", Source: "the bundle holds programs of that architecture",
			look: byFacts(checkArchitecture),
		},
		{
			Name: "preflight.processors", Asks: "whether there are enough processors", Levels: "error on masters, warning on workers", On: OnNodes,
			Limits: fmt.Sprintf("%d", minCPUs), Reads: "getconf _NPROCESSORS_ONLN", Source: "kubeadm refuses a master with less; the deployment matrix wants as many of a worker",
			look: byFacts(checkProcessors),
		},
		{
			Name: "preflight.memory", Asks: "whether there is enough memory", Levels: "error, warning", On: OnNodes,
			Limits: fmt.Sprintf("error under %d MiB on a master and %d MiB on a worker, warning under %d MiB and %d MiB",
				leastMasterMemory>>20, leastWorkerMemory>>20, wantedMasterMemory>>20, wantedWorkerMemory>>20),
			Reads: "MemTotal of /proc/meminfo", Source: "kubeadm refuses a master with less than 1700 MB; the deployment matrix wants 4 GB and 2 GB, of which an eighth may be the kernel's own",
			look: byFacts(checkMemory),
		},
		{
			Name: "preflight.kernel", Asks: "whether the kernel is new enough", Levels: "error, warning",
			Limits: fmt.Sprintf("error before %s, before %s for Kubernetes 1.32 and 1.33, and before %s with kube-proxy's mode nftables; warning before %[2]s", leastKernel, wantedKernel, nftablesKernel),
			Reads:  "uname -r", Source: "the deployment matrix; kubeadm's system verification, which only warns since 1.34; kube-proxy",
			look: byFacts(checkKernel),
		},
		{
			Name: "preflight.cgroups", Asks: "whether this Kubernetes still wants the host's version of control groups", Levels: "warning", On: OnNodes,
			Limits: "version 1 from Kubernetes 1.31 on", Reads: "the type of /sys/fs/cgroup", Source: "version 1 is in maintenance since 1.31; a kubelet of 1.35 or newer refuses it by default, and kubexm has it accept it (failCgroupV1)",
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
			what = "/etc/os-release does not say what the operating system is"
		}
		f := steps.Finding{What: what, Advice: "install one of " + strings.Join(names, "; ")}
		if slices.ContainsFunc(h.Cluster.Spec.Bundle.OperatingSystems, func(s manifest.OperatingSystem) bool {
			return s.Name == h.Facts.OS.ID && slices.Contains(s.Releases, h.Facts.OS.VersionID)
		}) { // whoever names it vouches for it
			f.What, f.Warning = what+", and the config names it", true
		}
		out = append(out, f)
	}
	if h.Facts.Systemd == 0 {
		out = append(out, steps.Finding{What: "process 1 is " + h.Facts.Init + ", not systemd", Advice: "use a distribution with systemd"})
	}
	return out, nil
}

func checkArchitecture(h *steps.Host) steps.Findings {
	if h.Facts.Arch == h.Arch {
		return nil
	}
	return steps.Findings{{What: fmt.Sprintf("the architecture is %s, the config says %s", h.Facts.Arch, h.Arch), Advice: "set arch of this host in spec.hosts, and build the bundle for it"}}
}

func checkProcessors(h *steps.Host) steps.Findings {
	if h.Facts.CPUs >= minCPUs {
		return nil
	}
	return steps.Findings{{What: fmt.Sprintf("has %d processor, a %s needs %d", h.Facts.CPUs, role(h), minCPUs), Advice: "give the machine more processors", Warning: !master(h)}}
}

func checkMemory(h *steps.Host) steps.Findings {
	least, wanted := int64(leastWorkerMemory), int64(wantedWorkerMemory)
	if master(h) {
		least, wanted = leastMasterMemory, wantedMasterMemory
	}
	switch m := h.Facts.Memory; {
	case m < least:
		return steps.Findings{{What: fmt.Sprintf("has %d MiB of memory, a %s needs %d MiB", m>>20, role(h), least>>20), Advice: "give the machine more memory"}}
	case m < wanted:
		return steps.Findings{{What: fmt.Sprintf("has %d MiB of memory, a %s should have %d MiB", m>>20, role(h), wanted>>20), Advice: "give the machine more memory, before pods ask for it", Warning: true}}
	}
	return nil
}

func checkKernel(h *steps.Host) steps.Findings {
	k := kernel(h.Facts.Kernel)
	switch {
	case k == nil: // one of somebody's own
		return nil
	case k.LessThan(leastKernel):
		return steps.Findings{{What: "kernel " + h.Facts.Kernel + " is too old", Advice: "use " + wantedKernel.String() + " or newer"}}
	case node(h) && h.Cluster.Spec.Kubernetes.KubeProxy.Mode == "nftables" && k.LessThan(nftablesKernel):
		return steps.Findings{{What: "kernel " + h.Facts.Kernel + " is too old for kube-proxy's mode nftables", Advice: "use " + nftablesKernel.String() + " or newer, or set spec.kubernetes.kubeProxy.mode to iptables"}}
	case !k.LessThan(wantedKernel):
		return nil
	}
	if v := minor(h.Cluster); node(h) && (v == 32 || v == 33) {
		return steps.Findings{{What: fmt.Sprintf("kernel %s is too old for kubeadm %s", h.Facts.Kernel, h.Cluster.Spec.Kubernetes.Version), Advice: "use " + wantedKernel.String() + " or newer, or another version of Kubernetes"}}
	}
	return steps.Findings{{What: "kernel " + h.Facts.Kernel + " is older than Kubernetes is tested with", Advice: "use " + wantedKernel.String() + " or newer where you can", Warning: true}}
}

// kernel reads the numbers at the start of a kernel's release.
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
	what := fmt.Sprintf("has control groups of version 1, which Kubernetes %s only maintains", h.Cluster.Spec.Kubernetes.Version)
	if v >= 35 {
		what = fmt.Sprintf("has control groups of version 1, which Kubernetes %s refuses unless it is told otherwise, as kubexm does", h.Cluster.Spec.Kubernetes.Version)
	}
	return steps.Findings{{What: what, Advice: "boot with systemd.unified_cgroup_hierarchy=1, or use a newer release of the distribution", Warning: true}}
}

// minor gives the second number of the cluster's Kubernetes version.
func minor(c *manifest.Cluster) uint64 {
	v, err := semver.NewVersion(c.Spec.Kubernetes.Version)
	if err != nil {
		return 0 // the config was checked
	}
	return v.Minor()
}

package preflight

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/packages"
	"github.com/mensylisir/kubexm/steps/runner"
)

// ourSysctls is the name of the file that a node's kernel settings are written to.
const ourSysctls = "99-kubexm-cri.conf"

// leastInotify is the kernel's default.
const leastInotify = "128"

func nodeChecks() []Check {
	return []Check{
		{
			Name: "preflight.kernel-modules", Question: "whether the kernel has the modules that nodes need", Levels: "error", On: OnNodes,
			Limits: "each is loaded, built into the kernel, or loadable", Reads: "/proc/modules, modules.builtin, /sys/module, modprobe -n", Source: "the modules that kubexm loads: overlay, br_netfilter, nf_conntrack, those of IPVS, those of the pod network, those of longhorn and of NFS",
			look: checkModules,
		},
		{
			Name: "preflight.commands", Question: "whether the commands that kubeadm, the kubelet and kubexm call are installed", Levels: "error, note", On: OnNodes,
			Limits: "ip, iptables, modprobe, mount, nsenter, touch; conntrack before Kubernetes 1.32; iscsiadm for longhorn; mount.nfs for spec.storage.nfs", Reads: "command -v", Source: "kubeadm's preflight (InPathCheck); commands in the bundle's packages count as installed",
			look: checkCommands, needs: repositories,
		},
		{
			Name: "preflight.sysctls", Question: "whether the host's sysctl files override settings that a node needs", Levels: "error, warning", On: OnNodes,
			Limits: fmt.Sprintf("no file after %s turns off forwarding or bridge filtering; fs.inotify.max_user_instances is at least the kernel's default %s; IPv6 is enabled if the cluster uses it", ourSysctls, leastInotify),
			Reads:  "sysctl.d of /etc, /run and /usr, /proc/sys", Source: "systemd-sysctl applies the files in the order of their names, and the last value wins; after a reboot pods would have no network",
			look: byFacts(checkSysctls),
		},
	}
}

func checkModules(_ context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	var absent []string
	for _, m := range o.Modules {
		if h.Facts.Modules[m] == runner.ModuleAbsent {
			absent = append(absent, m)
		}
	}
	if len(absent) == 0 {
		return nil, nil
	}
	advice := "install the package with the kernel's extra modules (linux-modules-extra, kernel-modules-extra), or another kernel"
	if slices.ContainsFunc(absent, func(m string) bool { return strings.HasPrefix(m, "ip_vs") }) {
		advice += "; or set spec.kubernetes.kubeProxy.mode to iptables"
	}
	if slices.ContainsFunc(part.NodeCacheModules(h.Cluster), func(m string) bool { return slices.Contains(absent, m) }) {
		advice += "; or set spec.dns.nodelocaldns.enabled to false"
	}
	for _, m := range part.VolumeModules(h.Cluster) {
		if slices.Contains(absent, m.Name) {
			advice += "; or remove " + m.Field
		}
	}
	if n := part.NetworkOf(h.Cluster); n.Advice != "" && slices.ContainsFunc(n.Modules, func(m string) bool { return slices.Contains(absent, m) }) {
		advice += "; or " + n.Advice
	}
	return steps.Findings{{What: "the kernel has no module " + strings.Join(absent, ", "), Advice: advice}}, nil
}

// packagesOf lists the packages that contain a command, over all distributions.
var packagesOf = map[string][]string{
	"conntrack": {"conntrack", "conntrack-tools"},
	"ip":        {"iproute2", "iproute"},
	"iscsiadm":  {"open-iscsi", "iscsi-initiator-utils"},
	"iptables":  {"iptables", "iptables-nft", "iptables-legacy"},
	"modprobe":  {"kmod"},
	"mount.nfs": {"nfs-common", "nfs-utils"},
	"mount":     {"mount", "util-linux"},
	"nsenter":   {"util-linux"},
	"touch":     {"coreutils"},
}

func checkCommands(_ context.Context, h *steps.Host, o Options) (steps.Findings, error) {
	want := []string{"ip", "iptables", "modprobe", "mount", "nsenter", "touch"}
	if minor(h.Cluster) < 32 {
		want = append(want, "conntrack")
	}
	if part.HasLonghorn(h.Cluster) { // its managers call it on the node
		want = append(want, "iscsiadm")
	}
	if part.HasNFS(h.Cluster) { // mount calls it for the kubelet
		want = append(want, "mount.nfs")
	}
	coming, known := coming(h, o)
	var missing, maybe []string
	for _, c := range want {
		installs := func(p string) bool { return slices.Contains(coming, p) }
		switch {
		case slices.Contains(h.Facts.Commands, c) || slices.ContainsFunc(packagesOf[c], installs):
		case known:
			missing = append(missing, c)
		default:
			maybe = append(maybe, c)
		}
	}
	var out steps.Findings
	if len(missing) > 0 {
		var from []string
		for _, c := range missing {
			from = append(from, packagesOf[c][0])
		}
		out = append(out, steps.Finding{What: "missing commands: " + strings.Join(missing, ", "), Advice: fmt.Sprintf("install the packages (%s), or list them in spec.system and build a bundle that includes them", strings.Join(from, ", "))})
	}
	if len(maybe) > 0 {
		out = append(out, steps.Finding{What: "missing commands: " + strings.Join(maybe, ", ") + "; whether the bundle's packages contain them is unknown without a bundle", Advice: "specify the bundle with --bundle", Note: true})
	}
	return out, nil
}

// coming lists the packages that kubexm installs on a host from the bundle. known is
// false if there is no bundle to read them from.
func coming(h *steps.Host, o Options) (names []string, known bool) {
	if len(o.Systems) == 0 || !slices.Contains(o.Systems, packages.SystemOf(h.Facts)) {
		return nil, true
	}
	if h.Artifacts == nil {
		return nil, false
	}
	repo, err := h.Repository(manifest.Need{Kind: manifest.Packages, Name: packages.SystemOf(h.Facts)})
	if err != nil {
		return nil, true // another check reports it
	}
	for _, m := range repo.Members {
		if name, _, ok := strings.Cut(m.Package, " "); ok {
			names = append(names, name)
		}
	}
	return names, true
}

// forbids are the values that disable what a node needs.
var forbids = map[string]string{
	"net.ipv4.ip_forward": "0", "net.ipv4.conf.all.forwarding": "0",
	"net.bridge.bridge-nf-call-iptables": "0", "net.bridge.bridge-nf-call-ip6tables": "0",
}

var forbidsIPv6 = map[string]string{"net.ipv6.conf.all.forwarding": "0", "net.ipv6.conf.all.disable_ipv6": "1"}

func checkSysctls(h *steps.Host) steps.Findings {
	_, six := part.PodRanges(h.Cluster)
	var out steps.Findings
	for _, l := range h.Facts.SysctlFiles {
		bad := forbids[l.Key] == l.Value && l.Value != "" || six != "" && forbidsIPv6[l.Key] == l.Value && l.Value != ""
		if bad && l.After(ourSysctls) {
			out = append(out, steps.Finding{
				What:   fmt.Sprintf("%s sets %s to %s, and systemd applies it after kubexm's %s", l.File, l.Key, l.Value, ourSysctls),
				Advice: "remove the line: after a reboot pods would have no network",
			})
		}
	}
	if six != "" && h.Facts.Sysctls["net.ipv6.conf.all.disable_ipv6"] == "1" {
		out = append(out, steps.Finding{What: "IPv6 is disabled (net.ipv6.conf.all.disable_ipv6), but the cluster's pods have IPv6 addresses", Advice: "enable it, or remove the IPv6 networks from kubePodsCIDR and kubeServiceCIDR"})
	}
	if v := h.Facts.Sysctls["fs.inotify.max_user_instances"]; v != "" && (len(v) < len(leastInotify) || len(v) == len(leastInotify) && v < leastInotify) {
		out = append(out, steps.Finding{What: fmt.Sprintf("fs.inotify.max_user_instances is %s: kubelet and containers run out of inotify instances", v), Advice: "set it to " + leastInotify + " or more in /etc/sysctl.d", Warning: true})
	}
	slices.SortFunc(out, compareFindings)
	return out
}

// leftovers returns which of the traces are files of a Kubernetes node, and which are
// configurations of a pod network.
func leftovers(traces []string) (cluster, networks []string) {
	for _, t := range traces {
		switch {
		case strings.HasPrefix(t, "/etc/cni/net.d/"):
			if ext := path.Ext(t); ext == ".conf" || ext == ".conflist" || ext == ".json" {
				networks = append(networks, path.Base(t))
			}
		case strings.HasPrefix(t, "/etc/kubernetes/"), strings.HasPrefix(t, "/var/lib/kubelet/"):
			cluster = append(cluster, t)
		}
	}
	slices.Sort(cluster)
	slices.Sort(networks)
	return cluster, networks
}

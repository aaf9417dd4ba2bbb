package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/op"
)

// settings are the kernel settings that kubelet, kube-proxy and the pod network
// need.
func settings(c *manifest.Cluster) []Sysctl {
	s := []Sysctl{
		{Key: "net.bridge.bridge-nf-call-iptables", Value: "1"},
		{Key: "net.bridge.bridge-nf-call-ip6tables", Value: "1"},
		{Key: "net.ipv4.ip_forward", Value: "1"},
	}
	if _, six := part.PodRanges(c); six != "" {
		s = append(s, Sysctl{Key: "net.ipv6.conf.all.forwarding", Value: "1"})
	}
	if protects(c) {
		s = append(s, defaults()...)
	}
	return s
}

// minimums are kernel settings that a host may exceed. The kubelet, its plugins and many
// pods watch files, and all processes of root share one limit. These are the values that
// kind recommends: https://kind.sigs.k8s.io/docs/user/known-issues/, "pod errors due to too
// many open files".
var minimums = []Sysctl{
	{Key: "fs.inotify.max_user_instances", Value: "512", AtLeast: true},
	{Key: "fs.inotify.max_user_watches", Value: "524288", AtLeast: true},
}

// changed are the kernel settings that the kubelet, kube-proxy in all modes and the pod
// network change at their start and do not restore at their end.
var changed = []string{
	"net.ipv4.conf.all.route_localnet", "net.ipv4.conf.all.arp_ignore", "net.ipv4.conf.all.arp_announce",
	"net.ipv4.vs.conntrack", "net.ipv4.vs.conn_reuse_mode", "net.ipv4.vs.expire_nodest_conn", "net.ipv4.vs.expire_quiescent_template",
	"net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_tcp_timeout_established", "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
	"net.netfilter.nf_conntrack_tcp_be_liberal", "net.netfilter.nf_conntrack_udp_timeout", "net.netfilter.nf_conntrack_udp_timeout_stream",
}

// defaults returns the kernel settings that a kubelet requires, and sets itself unless
// protectKernelDefaults is on.
func defaults() []Sysctl {
	var out []Sysctl
	for _, s := range manifest.Settings() {
		if s.Of == manifest.OfKernel {
			out = append(out, Sysctl{Key: s.Name, Value: s.Value})
		}
	}
	return out
}

// protects reports whether kubexm sets these, and kubelets do not change them.
func protects(c *manifest.Cluster) bool { return len(c.SettingsOf(manifest.OfKernel)) > 0 }

// notedKeys returns the settings that Kubernetes and the pod network change and kubexm does not set.
// Their earlier values are put on record.
func notedKeys(c *manifest.Cluster) []string {
	return slices.Concat(byKubelets(c), part.NetworkOf(c).Sysctls)
}

// byKubelets returns the settings that Kubernetes changes and kubexm does not set.
func byKubelets(c *manifest.Cluster) []string {
	if protects(c) {
		return changed
	}
	var out []string
	for _, s := range defaults() {
		out = append(out, s.Key)
	}
	return append(out, changed...)
}

// modules returns the kernel modules that these settings, containerd, kube-proxy, longhorn and the
// pod network need.
func modules(c *manifest.Cluster) []string {
	m := []string{"overlay", "br_netfilter", "nf_conntrack"}
	if c.Spec.Kubernetes.KubeProxy.Mode == "ipvs" {
		m = append(m, "ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_sh")
	}
	m = slices.Concat(m, part.NetworkOf(c).Modules, part.NodeCacheModules(c))
	for _, v := range part.VolumeModules(c) {
		m = append(m, v.Name)
	}
	return m
}

// kernel returns the live settings first, then the files for the next boot. In the other
// order a reboot in between would apply the files before the earlier values are on record.
// A removal, which runs in reverse order, deletes the files before it deletes that record.
// For a removal, values includes all settings that another config may have set.
func kernel(c *manifest.Cluster, noted []string, values []Sysctl) []op.Resource {
	var rs []op.Resource
	for _, m := range modules(c) {
		rs = append(rs, Module{Name: m})
	}
	rs = append(rs, Noted{Keys: noted}, Tables{})
	for _, s := range values {
		rs = append(rs, s)
	}
	for _, s := range minimums {
		rs = append(rs, s)
	}
	return append(rs,
		op.Text("/etc/modules-load.d/kubexm.conf", func(context.Context, *steps.Host) ([]byte, error) {
			return []byte(strings.Join(modules(c), "\n") + "\n"), nil
		}),
		op.Text("/etc/sysctl.d/99-kubexm-cri.conf", func(ctx context.Context, h *steps.Host) ([]byte, error) { return atBoot(ctx, h, values) }))
}

// atBoot returns the file that systemd-sysctl reads at boot. It leaves out a minimum that
// the host exceeds, because another file of the host sets that.
func atBoot(ctx context.Context, h *steps.Host, all []Sysctl) ([]byte, error) {
	var b strings.Builder
	for _, s := range slices.Concat(all, minimums) {
		if s.AtLeast {
			have, err := h.Sysctl(ctx, s.Key)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if s.Enough(have) && have != s.Value {
				continue
			}
		}
		fmt.Fprintf(&b, "%s = %s\n", s.Key, s.Value)
	}
	return []byte(b.String()), nil
}

// Kernel loads kernel modules and sets kernel settings, immediately and at every boot.
func Kernel(c *manifest.Cluster) steps.Step {
	return op.Ensure("node.configure-kernel", kernel(c, notedKeys(c), settings(c)))
}

// ResetKernel removes the files of kubexm's kernel settings, restores the earlier values, and
// unloads the modules that kubexm loaded.
func ResetKernel(c *manifest.Cluster) steps.Step {
	tight, loose := *c, *c
	tight.Spec.Kubernetes.Hardening.Relax, loose.Spec.Kubernetes.Hardening.Relax = nil, []string{manifest.RelaxKernelDefaults}
	return op.Remove("node.reset-kernel", kernel(c, notedKeys(&loose), settings(&tight)))
}

// names returns the block at the top of /etc/hosts, because the first line with a name is
// used. It is added before the host's own line is removed, and removed after that line is
// restored: sudo resolves the host's name each time, and would query a name server in
// between.
func names(c *manifest.Cluster) func(*steps.Host) []op.Resource {
	return func(h *steps.Host) []op.Resource {
		return []op.Resource{op.Block{Path: "/etc/hosts", Top: true, Body: func(ctx context.Context, h *steps.Host) ([]byte, error) {
			joined, err := controlplane.Complete(ctx, h)
			if err == nil && !joined && part.WorkerBalancers.In(c, h.Name) {
				joined, err = h.Exists(ctx, part.WorkerBalancerPod)
			}
			return Hosts(c, h.Name, joined, h.Away...), err
		}}, noLoopback(h.Name)}
	}
}

// noLoopback removes a host's own name from loopback addresses, to which distributions map
// it. An earlier line does not suffice: with "multi on" in /etc/host.conf, Debian's default,
// all lines apply, and the C library sorts the nearest address first.
func noLoopback(name string) op.Edit {
	own := func(word string) bool { return word == name || strings.HasPrefix(word, name+".") }
	return op.Edit{Path: "/etc/hosts", Line: func(line string) string {
		if !strings.Contains(line, name) { // as nearly all of a thousand lines
			return line
		}
		words, comment, _ := strings.Cut(line, "#")
		f := strings.Fields(words)
		if len(f) < 2 || !strings.HasPrefix(f[0], "127.") && f[0] != "::1" || !slices.ContainsFunc(f[1:], own) {
			return line
		}
		rest := slices.DeleteFunc(slices.Clone(f[1:]), own)
		if len(rest) == 0 {
			return "# kubexm: " + line
		}
		out := f[0] + " " + strings.Join(rest, " ")
		if comment != "" {
			out += " #" + comment
		}
		return out
	}}
}

// Names writes the cluster's host names and endpoint into /etc/hosts.
func Names(c *manifest.Cluster) steps.Step { return op.EnsureOn("node.update-etc-hosts", names(c)) }

// AimAtItself points the endpoint's name in /etc/hosts of a master that has joined at its
// own API server. Until then the name points at the first master.
func AimAtItself(c *manifest.Cluster) steps.Step {
	return op.EnsureOn("node.aim-at-own-api-server", names(c))
}

// AimAtWorkerBalancer points the endpoint's name in /etc/hosts of a worker at the load balancer
// on the worker. kubeadm join must reach an API server before that one can run.
func AimAtWorkerBalancer(c *manifest.Cluster) steps.Step {
	return op.EnsureOn("node.aim-at-worker-balancer", names(c))
}

// RemoveNames removes the cluster's names from /etc/hosts, and restores the host's own lines.
func RemoveNames(c *manifest.Cluster) steps.Step {
	return op.RemoveOn("node.restore-etc-hosts", names(c))
}

// Hosts returns the lines of /etc/hosts on the host self: all hosts, the control plane's
// name, the registry's name, and the config's own lines. joined is true for a master whose
// own API server runs, and for a worker with its own load balancer. away lists hosts that cannot be reached.
func Hosts(c *manifest.Cluster, self string, joined bool, away ...string) []byte {
	var b bytes.Buffer // each host of a thousand has a line of every one
	size := 256        // for the other lines
	for i := range c.Spec.Hosts {
		h := &c.Spec.Hosts[i]
		for _, a := range h.InternalAddress {
			size += len(a) + 2*len(h.Name) + len(c.Spec.Kubernetes.ClusterName) + len("  .\n")
		}
	}
	b.Grow(size)
	line := func(address string, names ...string) {
		if address == "" || len(names) == 0 {
			return
		}
		b.WriteString(address)
		for _, n := range names {
			b.WriteByte(' ')
			b.WriteString(n)
		}
		b.WriteByte('\n')
	}
	for i := range c.Spec.Hosts {
		h := &c.Spec.Hosts[i]
		for _, a := range h.InternalAddress {
			line(a, h.Name, h.Name+"."+c.Spec.Kubernetes.ClusterName)
		}
	}
	e := part.EndpointOf(c).Without(away...)
	line(e.Address(manifest.Host{Name: self}, joined), e.Domain)
	if r := c.HostsWith(manifest.RoleRegistry); len(r) > 0 {
		name, _, _ := strings.Cut(c.Spec.Registry.PrivateRegistry, ":")
		line(Address(r[0]), name)
	}
	for _, e := range c.Spec.Extra.Hosts {
		line(e.Address, e.Domain)
	}
	return b.Bytes()
}

// Address returns the address at which the cluster's hosts reach h: its internal one, if it
// has one.
func Address(h manifest.Host) string {
	if len(h.InternalAddress) > 0 {
		return h.InternalAddress[0]
	}
	return h.Address
}

// ForgetNothing removes the folder of kubexm's records if it is empty, as an interrupted
// removal may leave it.
func ForgetNothing() steps.Step {
	return op.Remove("node.remove-empty-records", []op.Resource{op.Records{Empty: true}})
}

// ForgetRecords removes kubexm's records of the host's earlier state. It is the last step of
// a removal.
func ForgetRecords() steps.Step {
	return op.Remove("node.forget-records", []op.Resource{op.Records{}})
}

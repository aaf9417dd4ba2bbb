package node

import (
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
	if dual(c) {
		s = append(s, Sysctl{Key: "net.ipv6.conf.all.forwarding", Value: "1"})
	}
	if protects(c) {
		s = append(s, defaults()...)
	}
	return s
}

// roomy are kernel settings of which a host may have more. The kubelet, its plugins
// and many a pod watch files, and all of root's share one number; these are what
// kind asks for: https://kind.sigs.k8s.io/docs/user/known-issues/, "pod errors due to
// too many open files".
var roomy = []Sysctl{
	{Key: "fs.inotify.max_user_instances", Value: "512", AtLeast: true},
	{Key: "fs.inotify.max_user_watches", Value: "524288", AtLeast: true},
}

// changed are the kernel settings that the kubelet, kube-proxy in each of its modes
// and the pod network set when they start, and leave so when they end.
var changed = []string{
	"net.ipv4.conf.all.route_localnet", "net.ipv4.conf.all.arp_ignore", "net.ipv4.conf.all.arp_announce",
	"net.ipv4.vs.conntrack", "net.ipv4.vs.conn_reuse_mode", "net.ipv4.vs.expire_nodest_conn", "net.ipv4.vs.expire_quiescent_template",
	"net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_tcp_timeout_established", "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
	"net.netfilter.nf_conntrack_tcp_be_liberal", "net.netfilter.nf_conntrack_udp_timeout", "net.netfilter.nf_conntrack_udp_timeout_stream",
}

// defaults are the kernel settings that a kubelet asks for, and that it sets itself
// where it is let.
func defaults() []Sysctl {
	var out []Sysctl
	for _, s := range manifest.Settings() {
		if s.Of == manifest.OfKernel {
			out = append(out, Sysctl{Key: s.Name, Value: s.Value})
		}
	}
	return out
}

// protects tells whether kubelets find them set, and leave them alone.
func protects(c *manifest.Cluster) bool { return len(c.SettingsOf(manifest.OfKernel)) > 0 }

// byKubelets are those that change by themselves: a host of which kubexm set some
// has nothing else to note of these.
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

func dual(c *manifest.Cluster) bool {
	return slices.ContainsFunc(c.Spec.Network.KubePodsCIDR, func(s string) bool { return strings.Contains(s, ":") })
}

// modules are the kernel modules that these settings, containerd, kube-proxy and
// the pod network need.
func modules(c *manifest.Cluster) []string {
	m := []string{"overlay", "br_netfilter", "nf_conntrack"}
	if c.Spec.Kubernetes.KubeProxy.Mode == "ipvs" {
		m = append(m, "ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_sh")
	}
	return append(m, part.NetworkOf(c).Modules...)
}

// kernel sets what is now before it writes what is to be after a boot. The other
// way about a boot in between would do the first, with nobody to note what was
// there before; and a removal, which goes backwards, has the files gone before it
// forgets that. A removal is given all settings that another config may have set.
func kernel(c *manifest.Cluster, noted []string, values []Sysctl) []op.Resource {
	var rs []op.Resource
	for _, m := range modules(c) {
		rs = append(rs, Module{Name: m})
	}
	rs = append(rs, Noted{Keys: noted}, Tables{})
	for _, s := range values {
		rs = append(rs, s)
	}
	for _, s := range roomy {
		rs = append(rs, s)
	}
	return append(rs,
		op.Text("/etc/modules-load.d/kubexm.conf", func(context.Context, *steps.Host) ([]byte, error) {
			return []byte(strings.Join(modules(c), "\n") + "\n"), nil
		}),
		op.Text("/etc/sysctl.d/99-kubexm-cri.conf", func(ctx context.Context, h *steps.Host) ([]byte, error) { return atBoot(ctx, h, values) }))
}

// atBoot is what sysctl reads at a boot. A host that has more of what is to be
// enough has that from elsewhere, and keeps it.
func atBoot(ctx context.Context, h *steps.Host, all []Sysctl) ([]byte, error) {
	var b strings.Builder
	for _, s := range slices.Concat(all, roomy) {
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

// Kernel loads modules and sets kernel settings, now and after each reboot.
func Kernel(c *manifest.Cluster) steps.Step {
	return op.Ensure("node.configure-kernel", kernel(c, byKubelets(c), settings(c)))
}

// ResetKernel is its inverse.
func ResetKernel(c *manifest.Cluster) steps.Step {
	tight, loose := *c, *c
	tight.Spec.Kubernetes.Hardening.Relax, loose.Spec.Kubernetes.Hardening.Relax = nil, []string{manifest.RelaxKernelDefaults}
	return op.Remove("node.reset-kernel", kernel(c, byKubelets(&loose), settings(&tight)))
}

// names stand before all other lines: the first that has a name counts. They come
// before the host's own line goes, and go after it is back: sudo looks its host up each
// time, and would ask a name server in between.
func names(c *manifest.Cluster) func(*steps.Host) []op.Resource {
	return func(h *steps.Host) []op.Resource {
		return []op.Resource{op.Block{Path: "/etc/hosts", Top: true, Body: func(ctx context.Context, h *steps.Host) ([]byte, error) {
			joined, err := controlplane.Complete(ctx, h)
			return Hosts(c, h.Name, joined), err
		}}, noLoopback(h.Name)}
	}
}

// noLoopback takes a host's own name off loopback addresses, where distributions put
// it. A line before does not suffice: with "multi on" in /etc/host.conf, which Debian
// has, all lines count, and the C library puts the nearest address first.
func noLoopback(name string) op.Edit {
	own := func(word string) bool { return word == name || strings.HasPrefix(word, name+".") }
	return op.Edit{Path: "/etc/hosts", Line: func(line string) string {
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

// Names writes the cluster's names into /etc/hosts.
func Names(c *manifest.Cluster) steps.Step { return op.EnsureOn("node.update-etc-hosts", names(c)) }

// AimAtItself has a master that has joined reach its own API server under the
// control plane's name: until then that is the first master's.
func AimAtItself(c *manifest.Cluster) steps.Step {
	return op.EnsureOn("node.aim-at-own-api-server", names(c))
}

// RemoveNames is its inverse.
func RemoveNames(c *manifest.Cluster) steps.Step {
	return op.RemoveOn("node.restore-etc-hosts", names(c))
}

// Hosts gives the lines of /etc/hosts on the host of that name: all hosts, the
// control plane's name, the registry's name, and the config's own lines. joined
// says that it is a master whose own API server runs.
func Hosts(c *manifest.Cluster, self string, joined bool) []byte {
	var b strings.Builder
	line := func(address string, names ...string) {
		if address != "" && len(names) > 0 {
			fmt.Fprintf(&b, "%s %s\n", address, strings.Join(names, " "))
		}
	}
	for _, h := range c.Spec.Hosts {
		for _, a := range h.InternalAddress {
			line(a, h.Name, h.Name+"."+c.Spec.Kubernetes.ClusterName)
		}
	}
	e := part.EndpointOf(c)
	line(e.Address(manifest.Host{Name: self}, joined), e.Domain)
	if r := c.HostsWith(manifest.RoleRegistry); len(r) > 0 {
		name, _, _ := strings.Cut(c.Spec.Registry.PrivateRegistry, ":")
		line(Address(r[0]), name)
	}
	for _, e := range c.Spec.Extra.Hosts {
		line(e.Address, e.Domain)
	}
	return []byte(b.String())
}

// Address is the address of a host that the cluster's machines use.
func Address(h manifest.Host) string {
	if len(h.InternalAddress) > 0 {
		return h.InternalAddress[0]
	}
	return h.Address
}

// ForgetNothing removes the folder of records where it is empty: what a removal
// that was cut off could leave.
func ForgetNothing() steps.Step {
	return op.Remove("node.remove-empty-records", []op.Resource{op.Records{Empty: true}})
}

// ForgetRecords removes what kubexm wrote down about the host's state before:
// the last step of a removal.
func ForgetRecords() steps.Step {
	return op.Remove("node.forget-records", []op.Resource{op.Records{}})
}

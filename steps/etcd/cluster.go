package etcd

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// The further ports of a member: the defaults of etcd's documentation and of kubeadm.
const (
	peerPort    = "2380"
	metricsPort = "2381" // plain HTTP, on the loopback address alone
)

// address returns the address at which other members and API servers reach a member.
func address(c *manifest.Cluster, h manifest.Host) string { return c.NodeAddresses(h)[0] }

func clientURL(host string) string {
	return "https://" + net.JoinHostPort(host, strconv.Itoa(part.ClientPort))
}
func peerURL(host string) string { return "https://" + net.JoinHostPort(host, peerPort) }

// loopback returns the loopback address of the same IP family as address.
func loopback(address string) string {
	if strings.Contains(address, ":") {
		return "::1"
	}
	return "127.0.0.1"
}

// Flags returns etcd's flags for the fields of spec.etcd, with the user's extraArgs last.
// Members that kubeadm runs get the same flags.
func Flags(c *manifest.Cluster) manifest.Args {
	e := c.Spec.Etcd
	number := func(name string, n int64) manifest.Arg {
		return manifest.Arg{Name: name, Value: strconv.FormatInt(n, 10)}
	}
	as := manifest.Args{
		number("heartbeat-interval", int64(e.HeartbeatInterval)), number("election-timeout", int64(e.ElectionTimeout)),
		number("snapshot-count", int64(e.SnapshotCount)), number("quota-backend-bytes", e.QuotaBackendBytes),
		number("max-request-bytes", e.MaxRequestBytes), {Name: "metrics", Value: e.Metrics}, {Name: "log-level", Value: e.LogLevel},
	}
	for _, p := range []struct {
		name string
		n    *int
	}{{"auto-compaction-retention", e.AutoCompactionRetention}, {"max-snapshots", e.MaxSnapshots}, {"max-wals", e.MaxWALs}} {
		if p.n != nil {
			as = append(as, number(p.name, int64(*p.n)))
		}
	}
	return over(as, e.ExtraArgs)
}

// over replaces flags by the user's own of the same name.
func over(ours, users manifest.Args) manifest.Args {
	out := slices.Clone(ours)
	for _, u := range users {
		out = slices.DeleteFunc(out, func(a manifest.Arg) bool { return a.Name == u.Name })
	}
	return append(out, users...)
}

// initialCluster returns the value of the flag initial-cluster for the members of the config.
func initialCluster(c *manifest.Cluster) string {
	var all []string
	for _, m := range part.StoreOf(c).Members {
		all = append(all, m.Name+"="+peerURL(address(c, m)))
	}
	return strings.Join(all, ",")
}

// memberFlags returns all flags of the member on h. A member with data ignores the flags of
// the first start (initial-*), so that one unit serves both cases and existing data is
// never overwritten.
func memberFlags(c *manifest.Cluster, h manifest.Host, initial string) manifest.Args {
	at := address(c, h)
	ours := manifest.Args{
		{Name: "name", Value: h.Name}, {Name: "data-dir", Value: c.Spec.Etcd.DataDir},
		{Name: "listen-peer-urls", Value: peerURL(at)}, {Name: "initial-advertise-peer-urls", Value: peerURL(at)},
		{Name: "listen-client-urls", Value: clientURL(at) + "," + clientURL(loopback(at))}, {Name: "advertise-client-urls", Value: clientURL(at)},
		{Name: "listen-metrics-urls", Value: "http://" + net.JoinHostPort(loopback(at), metricsPort)},
		{Name: "initial-cluster", Value: initial},
		{Name: "initial-cluster-token", Value: c.Metadata.Name},
		{Name: "client-cert-auth", Value: "true"}, {Name: "trusted-ca-file", Value: caFile},
		{Name: "cert-file", Value: serverCert}, {Name: "key-file", Value: serverKey},
		{Name: "peer-client-cert-auth", Value: "true"}, {Name: "peer-trusted-ca-file", Value: caFile},
		{Name: "peer-cert-file", Value: peerCert}, {Name: "peer-key-file", Value: peerKey},
	}
	return over(append(ours, Flags(c)...), c.Spec.Etcd.ExtraArgs)
}

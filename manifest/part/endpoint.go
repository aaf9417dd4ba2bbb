package part

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Front is what clients connect to in order to reach the API servers.
type Front int

// The fronts.
const (
	NoFront       Front = iota // clients connect to the API servers directly
	DNSFront                   // the site's name servers return the masters' addresses
	ExternalFront              // an existing load balancer
	HostsFront                 // keepalived with a Program on the hosts of the role loadbalancer
	KubeVIPFront               // kube-vip holds the virtual IP on one of the masters
)

// Program forwards TCP connections to the API servers; "" means none.
type Program string

// The programs, with their names in the config.
const (
	HAProxy Program = "haproxy"
	NGINX   Program = "nginx"
)

// Endpoint is where clients reach the API servers.
type Endpoint struct {
	Domain string // the name in certificates and kubeconfigs
	// VIP is the address of Front, or the address of one master without a front. It is "" if
	// Domain resolves to the masters, or if the site's name servers resolve it.
	VIP     string
	Port    int // port for clients
	Backend int // port of each API server
	Front   Front
	Program Program // on the hosts of HostsFront
	OnNodes Program // on each worker that is no master, for the clients on that worker
	// SiteDNS means that the site's name servers resolve Domain, and that kubexm does not
	// write it to /etc/hosts. There may be a load balancer as well.
	SiteDNS bool

	masters []manifest.Host
	own     map[string]string // the address of each master by its name
}

// EndpointOf returns the endpoint of a config.
func EndpointOf(c *manifest.Cluster) Endpoint {
	cp, lb := c.Spec.ControlPlaneEndpoint, c.Spec.LoadBalancer
	e := Endpoint{
		Domain: cp.Domain, VIP: cp.Address, Port: cp.Port, Backend: c.APIServerPort(), SiteDNS: cp.ExternalDNS,
		masters: Masters.Hosts(c), own: map[string]string{},
	}
	for _, m := range e.masters {
		if all := c.NodeAddresses(m); len(all) > 0 {
			e.own[m.Name] = all[0]
		}
	}
	if e.SiteDNS {
		e.Front = DNSFront
	}
	switch lb.External.Type {
	case "external":
		e.Front = ExternalFront
	case "kubexm-kh":
		e.Front, e.Program = HostsFront, HAProxy
	case "kubexm-kn":
		e.Front, e.Program = HostsFront, NGINX
	}
	switch lb.Internal.Type {
	case "kube-vip":
		e.Front = KubeVIPFront
	case string(HAProxy), string(NGINX):
		e.OnNodes = Program(lb.Internal.Type)
	}
	return e
}

// Balanced reports whether clients use something other than the name of a master: a load
// balancer, whoever runs it, or the site's name servers.
func (e Endpoint) Balanced() bool {
	return e.Exists() || e.Front == HostsFront || e.Front == KubeVIPFront
}

// BalancerHealthPort is the TCP port on the loopback address of a load balancer host, or of a
// worker with a load balancer, on which haproxy or nginx reports its health.
const BalancerHealthPort = 8405

// Exists reports whether clients use an existing load balancer or the site's own name servers.
// kubexm configures neither of them.
func (e Endpoint) Exists() bool { return e.SiteDNS || e.Front == ExternalFront }

// Name returns the control plane's name and port.
func (e Endpoint) Name() string { return e.Domain + ":" + strconv.Itoa(e.Port) }

// At returns the address or name, with the port, at which a host reaches an endpoint that
// is Balanced before its name is in /etc/hosts.
func (e Endpoint) At() string {
	at := e.VIP
	if e.SiteDNS {
		at = e.Domain
	}
	return net.JoinHostPort(at, strconv.Itoa(e.Port))
}

// WorkerBalancerPod is the manifest of the static pod that runs OnNodes on a worker. It exists
// only while the worker is a member of the cluster.
const WorkerBalancerPod = "/etc/kubernetes/manifests/kubexm-balancer.yaml"

// OnWorker returns the address and port of the load balancer on a worker, for OnNodes.
func (e Endpoint) OnWorker() string { return net.JoinHostPort(e.loopback(), strconv.Itoa(e.Port)) }

// loopback returns the loopback address of the IP family of the first master.
func (e Endpoint) loopback() string {
	if len(e.masters) > 0 && strings.Contains(e.own[e.masters[0].Name], ":") {
		return "::1"
	}
	return "127.0.0.1"
}

// ResolvesToSelf reports whether Domain resolves to the master itself on each master that has
// joined.
func (e Endpoint) ResolvesToSelf() bool { return e.VIP == "" && !e.SiteDNS }

// Address returns the address that Domain must resolve to on h; "" if the site's name servers
// resolve it. member means that h has joined: a master, or a worker with its load balancer. On
// such a worker Domain resolves to the worker itself. Without a virtual IP, it resolves to the
// host itself on such a master, and to the first master on all other hosts.
func (e Endpoint) Address(h manifest.Host, member bool) string {
	switch {
	case e.SiteDNS:
		return ""
	case member && e.OnNodes != "" && !e.isMaster(h):
		return e.loopback()
	case e.VIP != "":
		return e.VIP
	case member && e.own[h.Name] != "":
		return e.own[h.Name]
	case len(e.masters) > 0:
		return e.own[e.masters[0].Name]
	}
	return ""
}

func (e Endpoint) isMaster(h manifest.Host) bool {
	return slices.ContainsFunc(e.masters, func(m manifest.Host) bool { return m.Name == h.Name })
}

// Without returns e without some masters, by name: the endpoint while they are not available.
func (e Endpoint) Without(away ...string) Endpoint {
	e.masters = slices.DeleteFunc(slices.Clone(e.masters), func(m manifest.Host) bool { return slices.Contains(away, m.Name) })
	e.own = maps.Clone(e.own)
	for _, name := range away {
		delete(e.own, name)
	}
	return e
}

// Backends returns the addresses and ports of the API servers, for a load balancer.
func (e Endpoint) Backends() []string {
	var out []string
	for _, m := range e.masters {
		out = append(out, net.JoinHostPort(e.own[m.Name], strconv.Itoa(e.Backend)))
	}
	return out
}

package part

import (
	"net"
	"strconv"

	"github.com/mensylisir/kubexm/manifest"
)

// Front is what stands before the API servers.
type Front int

// The fronts. KubeVIP and Hosts are known and cannot be installed yet.
const (
	NoFront       Front = iota // clients reach the API servers themselves
	DNSFront                   // the site's name servers give the masters' addresses
	ExternalFront              // a load balancer that exists
	HostsFront                 // keepalived with a Program on the hosts of the role loadbalancer
	KubeVIPFront               // kube-vip holds the virtual IP on the masters
)

// Program passes TCP on to the API servers; "" where there is none.
type Program string

// The programs, as a config names them.
const (
	HAProxy Program = "haproxy"
	NGINX   Program = "nginx"
)

// Endpoint is where clients reach the API servers.
type Endpoint struct {
	Domain string // the name in certificates and kubeconfigs
	// VIP is the address that Front holds, or one master's own where there is none; ""
	// where the name means the masters, or what the site's name servers say.
	VIP     string
	Port    int // that clients use
	Backend int // that each API server listens on
	Front   Front
	Runs    Program // on the hosts of HostsFront
	OnNodes Program // on each worker, for what runs there
	// SiteDNS says that the site's name servers resolve Domain, and kubexm writes it
	// into no file. There may be a load balancer as well.
	SiteDNS bool

	masters []manifest.Host
	own     map[string]string // the address of each master by its name
}

// EndpointOf gives the endpoint of a config.
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
		e.Front, e.Runs = HostsFront, HAProxy
	case "kubexm-kn":
		e.Front, e.Runs = HostsFront, NGINX
	}
	switch lb.Internal.Type {
	case "kube-vip":
		e.Front = KubeVIPFront
	case string(HAProxy), string(NGINX):
		e.OnNodes = Program(lb.Internal.Type)
	}
	return e
}

// Exists tells whether the site has what clients reach the API servers through: a load
// balancer that exists, or its own name servers. kubexm sets nothing up there.
func (e Endpoint) Exists() bool { return e.SiteDNS || e.Front == ExternalFront }

// Name is the control plane's name and port.
func (e Endpoint) Name() string { return e.Domain + ":" + strconv.Itoa(e.Port) }

// At is where a host reaches an endpoint that Exists before anything wrote its name into
// /etc/hosts: an address or a name, and the port.
func (e Endpoint) At() string {
	at := e.VIP
	if e.SiteDNS {
		at = e.Domain
	}
	return net.JoinHostPort(at, strconv.Itoa(e.Port))
}

// Own tells whether the name means, on each master that has joined, the master itself.
func (e Endpoint) Own() bool { return e.VIP == "" && !e.SiteDNS }

// Address gives what Domain is to resolve to on h; "" where the site's name servers
// say it. member tells whether h is a master that has joined: it then means itself where
// nothing holds an address for the masters, and all other hosts mean the first master.
func (e Endpoint) Address(h manifest.Host, member bool) string {
	switch {
	case e.SiteDNS:
		return ""
	case e.VIP != "":
		return e.VIP
	case member && e.own[h.Name] != "":
		return e.own[h.Name]
	case len(e.masters) > 0:
		return e.own[e.masters[0].Name]
	}
	return ""
}

// Backends are the addresses and ports of the API servers, as a load balancer needs them.
func (e Endpoint) Backends() []string {
	var out []string
	for _, m := range e.masters {
		out = append(out, net.JoinHostPort(e.own[m.Name], strconv.Itoa(e.Backend)))
	}
	return out
}

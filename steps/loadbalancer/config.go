package loadbalancer

import (
	"bytes"
	"context"
	"embed"
	"net"
	"path"
	"strconv"
	"strings"
	"text/template"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

//go:embed templates
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(files, "templates/*"))

// Dir is the folder of a load balancer host's own files.
const (
	Dir       = "/etc/kubexm/loadbalancer"
	caName    = "ca.crt"
	probeName = "probe.pem"
	caFile    = Dir + "/" + caName
	probeFile = Dir + "/" + probeName
	script    = Dir + "/check"
	notifier  = Dir + "/state"
)

// maxConnections is how many clients a host serves at once. Each takes two descriptors,
// and distributions limit a service to 1,048,576 of them, containers to fewer.
const maxConnections = 4000

// server is an API server behind the load balancer.
type server struct{ Name, Address string }

// values fill the templates.
type values struct {
	MaxConnections, Health     int
	Bind, Domain, CA, Probe    string
	User, Host, Interface, VIP string
	Source, Check, State       string
	Peers                      []string
	Config                     string // digest of the configuration in a pod, "" on load balancer hosts
	VRID, Priority             int
	Servers                    []server
}

func valuesOf(c *manifest.Cluster) values {
	e := part.EndpointOf(c)
	v := values{
		MaxConnections: maxConnections, Health: part.BalancerHealthPort, Domain: e.Domain, CA: caFile, Probe: probeFile, Check: script, State: notifier,
		VRID: c.Spec.LoadBalancer.External.Keepalived.VRID, VIP: e.VIP + "/32",
	}
	if isIPv6(e.VIP) {
		v.VIP = e.VIP + "/128"
	}
	for i, m := range part.Masters.Names(c) {
		v.Servers = append(v.Servers, server{m, e.Backends()[i]})
	}
	return v
}

func isIPv6(address string) bool { return strings.Contains(address, ":") }

func render(name string, v values) ([]byte, error) {
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, name, v)
	return b.Bytes(), err
}

// config is a configuration file that its program has accepted before it takes the place
// of the one in use.
type config struct {
	op.File
	check []string // argv of the program, which reads the candidate
}

func (f config) Want(ctx context.Context, h *steps.Host, changed bool) (*op.Change, error) {
	c, err := f.File.Want(ctx, h, changed)
	if c == nil || err != nil {
		return nil, err
	}
	put := c.Apply
	c.Apply = func(ctx context.Context, h *steps.Host) error {
		if err := f.accepted(ctx, h); err != nil {
			return err
		}
		return put(ctx, h)
	}
	undo := c.Undo
	c.Undo = func(ctx context.Context, h *steps.Host) error {
		if err := h.Remove(ctx, f.candidate()); err != nil {
			return err
		}
		return undo(ctx, h)
	}
	return c, nil
}

// candidate is the path of the new configuration until it is accepted.
func (f config) candidate() string { return path.Join(Dir, path.Base(f.Path)+".new") }

// accepted has the program read the new configuration from a file of kubexm's folder.
func (f config) accepted(ctx context.Context, h *steps.Host) error {
	text, err := f.Body(ctx, h)
	if err != nil {
		return err
	}
	candidate := f.candidate()
	if err := h.WriteFile(ctx, candidate, text, f.Attr); err != nil {
		return err
	}
	_, err = h.Exec(ctx, f.check...)
	if rerr := h.Remove(ctx, candidate); err == nil {
		err = rerr
	}
	if runner.Refused(err) {
		return steps.Advise(err, "see whether %s on %s is of a release that kubexm supports: %s -v", f.check[0], h.Name, f.check[0])
	}
	return err
}

func haproxy(c *manifest.Cluster) []op.Resource {
	return append(placeholders(), config{op.Text("/etc/haproxy/haproxy.cfg", func(context.Context, *steps.Host) ([]byte, error) {
		v, port := valuesOf(c), strconv.Itoa(c.Spec.ControlPlaneEndpoint.Port)
		if v.Bind = "0.0.0.0:" + port; isIPv6(v.VIP) {
			v.Bind = ":::" + port + " v4v6"
		}
		return render("haproxy.cfg", v)
	}), []string{"haproxy", "-c", "-q", "-f", Dir + "/haproxy.cfg.new"}})
}

func nginx(c *manifest.Cluster) []op.Resource {
	return []op.Resource{config{op.Text("/etc/nginx/nginx.conf", func(_ context.Context, h *steps.Host) ([]byte, error) {
		v, port := valuesOf(c), strconv.Itoa(c.Spec.ControlPlaneEndpoint.Port)
		if v.Bind = port; isIPv6(v.VIP) {
			v.Bind = "[::]:" + port + " ipv6only=off"
		}
		if v.User = "nginx"; h.Facts.PackageTool == "apt-get" {
			v.User = "www-data"
		}
		return render("nginx.conf", v)
	}), []string{"nginx", "-t", "-q", "-c" + Dir + "/nginx.conf.new"}}}
}

// scripts are the programs that keepalived calls.
func scripts() []op.Resource {
	file := func(path, template string) op.Resource {
		return op.File{Path: path, Attr: runner.Attr{Mode: 0o755}, Body: func(context.Context, *steps.Host) ([]byte, error) {
			return render(template, values{Health: part.BalancerHealthPort})
		}}
	}
	return []op.Resource{file(script, "check"), file(notifier, "state")}
}

// hostOf returns a load balancer host's place in the config, and the addresses of the others
// that are of the virtual IP's family.
func hostOf(c *manifest.Cluster, name string) (place int, source string, peers []string) {
	vip := part.EndpointOf(c).VIP
	for i, b := range part.Balancers.Hosts(c) {
		address := sameFamily(b, vip)
		if b.Name == name {
			place, source = i, address
			continue
		}
		peers = append(peers, address)
	}
	return place, source, peers
}

// sameFamily returns the first internal address of a host that is of the family of vip.
func sameFamily(h manifest.Host, vip string) string {
	for _, a := range h.InternalAddress {
		if isIPv6(a) == isIPv6(vip) {
			return a
		}
	}
	return ""
}

// ConfiguredInterface returns the interface of the config for the virtual IP, or "", and its field.
func ConfiguredInterface(c *manifest.Cluster) (name, field string) {
	if part.EndpointOf(c).Front == part.KubeVIPFront {
		return c.Spec.LoadBalancer.Internal.KubeVIP.Interface, "spec.loadBalancer.internal.kubeVip.interface"
	}
	return c.Spec.LoadBalancer.External.Keepalived.Interface, "spec.loadBalancer.external.keepalived.interface"
}

// Interface returns the name of the network interface that holds the virtual IP: the
// config's, or the one that has the host's internal address. The error is a
// *NoInterfaceError where there is none.
func Interface(c *manifest.Cluster, h *steps.Host) (string, error) {
	name, field := ConfiguredInterface(c)
	if name != "" {
		return name, nil
	}
	source := sameFamily(h.Host, part.EndpointOf(c).VIP)
	address := net.ParseIP(source)
	for _, i := range h.Facts.Interfaces {
		for _, p := range i.Addresses {
			if address != nil && address.Equal(p.Addr().AsSlice()) {
				return i.Name, nil
			}
		}
	}
	return "", steps.Advise(&NoInterfaceError{Host: h.Name, Address: source}, "write %s", field)
}

// NoInterfaceError reports that no network interface of a host has its internal address.
type NoInterfaceError struct{ Host, Address string }

func (e *NoInterfaceError) Error() string {
	if e.Address == "" {
		return "host " + e.Host + " has no internal address of the virtual IP's family"
	}
	return "no network interface of " + e.Host + " has the address " + e.Address
}

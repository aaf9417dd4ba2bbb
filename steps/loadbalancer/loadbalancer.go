package loadbalancer

import (
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// program is haproxy or nginx.
type program struct {
	unit      string
	resources func(*manifest.Cluster) []op.Resource // before its unit
	// leaves are files that the service or its package creates and no removal of the
	// package deletes (haproxy.service and the maintainer scripts of Debian 12).
	leaves []string
}

// programOf returns the program that a config installs on the load balancer hosts; its
// unit is empty where it installs none.
func programOf(c *manifest.Cluster) program {
	switch part.EndpointOf(c).Program {
	case part.HAProxy:
		return program{"haproxy.service", haproxy, []string{"/var/lib/haproxy", "/run/haproxy", "/run/haproxy.pid", "/run/haproxy-master.sock"}}
	case part.NGINX:
		return program{"nginx.service", nginx, []string{"/var/lib/nginx", "/var/log/nginx", "/run/nginx.pid", "/var/www"}}
	}
	return program{}
}

// ChecksReady reports whether the load balancer requests /readyz from API servers, and
// therefore needs the certificates of Trust. nginx's open source edition has no active
// health check of TCP servers.
func ChecksReady(c *manifest.Cluster) bool { return part.EndpointOf(c).Program == part.HAProxy }

func resources(c *manifest.Cluster) []op.Resource {
	p := programOf(c)
	rs := append([]op.Resource{op.Dir{Path: Dir, Own: true}}, p.resources(c)...)
	rs = append(append(rs, scripts()...), unmasked{unit: p.unit}, op.Unit{Name: p.unit, Reload: true})
	return append(rs, keepalivedConfig(c), unmasked{unit: keepalivedUnit}, op.Unit{Name: keepalivedUnit, Reload: true})
}

// held are the services before their packages come, and what these leave behind.
func held(c *manifest.Cluster) []op.Resource {
	p := programOf(c)
	return []op.Resource{
		op.Traces{Of: p.unit, Trees: p.leaves}, op.Traces{Of: keepalivedUnit, Trees: []string{"/run/keepalived", "/run/keepalived.pid", stateFile}},
		masked{unit: p.unit}, masked{unit: keepalivedUnit},
	}
}

// MaskServices masks the services of the packages before these are installed: some
// distributions start a service as soon as its package comes, with the
// distribution's configuration. nginx would listen on port 80.
func MaskServices(c *manifest.Cluster) steps.Step {
	return op.Ensure("loadbalancer.hold-services", held(c))
}

// UnmaskServices unmasks the services that MaskServices masked, where Install did not run, and
// removes what the services have left behind once their packages are gone.
func UnmaskServices(c *manifest.Cluster) steps.Step {
	return op.Remove("loadbalancer.release-services", held(c))
}

// Install configures and starts the load balancer, and keepalived after it.
func Install(c *manifest.Cluster) steps.Step {
	return op.Ensure("loadbalancer.install", resources(c))
}

// Uninstall is its inverse. keepalived stops first, which removes the virtual IP from
// the host.
func Uninstall(c *manifest.Cluster) steps.Step {
	return op.Remove("loadbalancer.uninstall", resources(c))
}

package preflight_test

import (
	"net"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/preflight"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestEndpointThatExists: what a load balancer and a name of the site's do before any
// API server runs.
func TestEndpointThatExists(t *testing.T) {
	const (
		balancer = "  controlPlaneEndpoint: {address: 192.0.2.100, port: 8443}\n  loadBalancer: {external: {type: external}}\n"
		named    = "  controlPlaneEndpoint: {domain: api.site.example, externalDNS: true}\n"
	)
	listens := func(at string) func(*conntest.Sim) {
		return func(s *conntest.Sim) {
			s.AddListener(at, func() net.Conn { here, there := net.Pipe(); _ = there.Close(); return here })
		}
	}
	lost := func(at string) func(*conntest.Sim) { return func(s *conntest.Sim) { s.DropConnectionsTo(at) } }
	unknown := func(s *conntest.Sim) { s.DisableDNS("api.site.example") }
	hold(t, "endpoint", map[string]row{
		"a balancer that listens":        {host: "w1", spec: balancer, before: listens("192.0.2.100:8443")},
		"a balancer that refuses":        {host: "m1", spec: balancer, want: []string{"warning: the load balancer at 192.0.2.100:8443 refuses connections"}},
		"a balancer that is not there":   {host: "w1", spec: balancer, before: lost("192.0.2.100:8443"), want: []string{"error: cannot reach the load balancer at 192.0.2.100:8443: connect to sim: dial 192.0.2.100:8443 from the host: connection timed out"}},
		"not tested":                     {host: "w1", spec: balancer, before: (*conntest.Sim).ForbidForwarding, want: []string{"note: connection to 192.0.2.100:8443 not tested: sshd forwards no connections"}},
		"a name of masters":              {host: "w1", spec: named},
		"a name that nobody knows":       {host: "w1", spec: named, before: unknown, want: []string{"error: cannot resolve api.site.example"}},
		"a name that nobody knows yet":   {host: "w1", spec: named + "  extra: {resolves: [192.0.2.53]}\n", before: unknown, want: []string{"warning: cannot resolve api.site.example"}},
		"a name that is written":         {host: "w1", spec: named + "  extra: {hosts: [{domain: api.site.example, address: 192.0.2.77}]}\n", before: unknown},
		"a name that leads nowhere":      {host: "w1", spec: named, before: lost("api.site.example:6443"), want: []string{"error: cannot reach api.site.example:6443: connect to sim: dial api.site.example:6443 from the host: connection timed out"}},
		"a written one leads nowhere":    {host: "w1", spec: named + "  extra: {hosts: [{domain: api.site.example, address: 192.0.2.77}]}\n", before: lost("192.0.2.77:6443"), want: []string{"error: cannot reach 192.0.2.77:6443: connect to sim: dial 192.0.2.77:6443 from the host: connection timed out"}},
		"a balancer under a site's name": {host: "w1", spec: named + "  loadBalancer: {external: {type: external}}\n", want: []string{"warning: the load balancer at api.site.example:6443 refuses connections"}},
	})
}

// TestEndpointAdvice: it names the servers that belong behind the load balancer.
func TestEndpointAdvice(t *testing.T) {
	c := steptest.Cluster(t, site+"  controlPlaneEndpoint: {address: 192.0.2.100, port: 443}\n  loadBalancer: {external: {type: external}}\n")
	found := steptest.Check(t, steptest.Case{Cluster: c, Before: func(s *conntest.Sim) { s.DropConnectionsTo("192.0.2.100:443") }}, step(t, "preflight.endpoint", preflight.Options{}))
	if len(found) != 1 || !strings.Contains(found[0].Advice, "192.0.2.11:6443") {
		t.Errorf("%+v", found)
	}
}

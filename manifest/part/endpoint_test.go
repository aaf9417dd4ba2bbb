package part_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

const direct = "controlPlaneEndpoint: {address: 192.0.2.11}"

func TestEndpointOf(t *testing.T) {
	for name, x := range map[string]struct {
		endpoint string
		want     string
	}{
		"a master's address": {direct, "front 0 on nodes  vip 192.0.2.11 port 6443 to 6443 exists false own false at 192.0.2.11:6443"},
		"nothing":            {"controlPlaneEndpoint: {port: 7443}", "front 0 on nodes  vip  port 7443 to 7443 exists false own true at :7443"},
		"site's DNS":         {"controlPlaneEndpoint: {externalDNS: true}", "front 1 on nodes  vip  port 6443 to 6443 exists true own false at lb.kubexm.local:6443"},
		"a load balancer": {"controlPlaneEndpoint: {address: 10.0.0.100, port: 7443}\n  loadBalancer: {external: {type: external}}",
			"front 2 on nodes  vip 10.0.0.100 port 7443 to 6443 exists true own false at 10.0.0.100:7443"},
		"a load balancer, and the site's DNS": {"controlPlaneEndpoint: {externalDNS: true}\n  loadBalancer: {external: {type: external}}",
			"front 2 on nodes  vip  port 6443 to 6443 exists true own false at lb.kubexm.local:6443"},
		"kube-vip": {"controlPlaneEndpoint: {address: 10.0.0.100, port: 7443}\n  loadBalancer: {internal: {type: kube-vip}}",
			"front 4 on nodes  vip 10.0.0.100 port 7443 to 7443 exists false own false at 10.0.0.100:7443"},
		"on each worker": {"controlPlaneEndpoint: {}\n  loadBalancer: {internal: {type: nginx}}",
			"front 0 on nodes nginx vip  port 6443 to 6443 exists false own true at :6443"},
	} {
		e := part.EndpointOf(with(t, direct, x.endpoint))
		if got := fmt.Sprint("front ", e.Front, " on nodes ", e.OnNodes, " vip ", e.VIP, " port ", e.Port, " to ", e.Backend, " exists ", e.Exists(), " own ", e.ResolvesToSelf(), " at ", e.At()); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
		if got := strings.Join(e.Backends(), " "); got != fmt.Sprintf("10.0.0.11:%d 10.0.0.12:%[1]d", e.Backend) || e.Name() != fmt.Sprint(e.Domain, ":", e.Port) {
			t.Errorf("%s: %s behind %s", name, got, e.Name())
		}
	}
	// kubexm's own: on hosts with the role.
	for kind, runs := range map[string]part.Program{"kubexm-kh": part.HAProxy, "kubexm-kn": part.NGINX} {
		c := with(t, direct, "controlPlaneEndpoint: {address: 10.0.0.100}\n  loadBalancer: {external: {type: "+kind+"}}", "registry: [r1]}", "registry: [r1], loadbalancer: [r1]}")
		if e := part.EndpointOf(c); e.Front != part.HostsFront || e.Program != runs || e.Exists() {
			t.Errorf("%s: %+v", kind, e)
		}
	}
}

// TestAddress: without a load balancer the name is the first master's, and each further
// one's own once it has joined. Elsewhere nothing changes.
func TestAddress(t *testing.T) {
	for _, x := range []struct {
		endpoint, self string
		member         bool
		want           string
	}{
		{"{}", "m1", false, "10.0.0.11"}, {"{}", "m1", true, "10.0.0.11"},
		{"{}", "m2", false, "10.0.0.11"}, {"{}", "m2", true, "10.0.0.12"},
		{"{}", "w1", false, "10.0.0.11"}, {"{}", "w1", true, "10.0.0.11"}, {"{}", "unknown", true, "10.0.0.11"},
		{"{address: 192.0.2.12}", "m1", true, "192.0.2.12"}, {"{externalDNS: true}", "m1", true, ""},
	} {
		e := part.EndpointOf(with(t, direct, "controlPlaneEndpoint: "+x.endpoint))
		if got := e.Address(manifest.Host{Name: x.self}, x.member); got != x.want {
			t.Errorf("%s %s member=%t: %s, want %s", x.endpoint, x.self, x.member, got, x.want)
		}
	}
	if got := (part.EndpointOf(&manifest.Cluster{})).Address(manifest.Host{Name: "m1"}, true); got != "" {
		t.Errorf("without masters: %s", got)
	}
}

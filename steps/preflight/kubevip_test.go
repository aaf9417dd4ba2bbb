package preflight_test

import (
	"testing"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// TestVirtualIPOfKubeVIP: which masters can hold the address, and whether it is unused.
func TestVirtualIPOfKubeVIP(t *testing.T) {
	spec := func(vip, link string) string {
		return "  controlPlaneEndpoint: {address: " + vip + "}\n  loadBalancer: {internal: {type: kube-vip, kubeVip: {" + link + "}}}\n"
	}
	on := func(addresses ...string) func(*conntest.Sim) {
		return func(s *conntest.Sim) {
			s.SetMachine(func(m *conntest.Machine) { m.Addresses = addresses })
			s.DropConnectionsTo("192.0.2.100:6443")
		}
	}
	hold(t, "virtual-ip", map[string]row{
		"unused":          {host: "m1", spec: spec("192.0.2.100", ""), before: on("192.0.2.11/24")},
		"another subnet":  {host: "m1", spec: spec("192.0.2.100", ""), before: on("192.0.2.11/26"), want: []string{"error: interface eth0 has no address in the subnet of the virtual IP 192.0.2.100"}},
		"another address": {host: "m1", spec: spec("192.0.2.100", ""), before: on("192.0.2.99/24"), want: []string{"error: no network interface of m1 has the address 192.0.2.11"}},
		"another link":    {host: "m1", spec: spec("192.0.2.100", "interface: bond0"), before: on("192.0.2.11/24"), want: []string{"error: has no network interface bond0"}},
		"in use": {host: "m1", spec: spec("192.0.2.100", ""), before: func(s *conntest.Sim) {
			s.SetMachine(func(m *conntest.Machine) { m.Addresses = []string{"192.0.2.11/24"} })
		}, want: []string{"error: the virtual IP is in use: a machine refuses connections at 192.0.2.100:6443"}},
		"left on the host": {host: "m1", spec: spec("192.0.2.100", ""), before: on("192.0.2.11/24", "192.0.2.100/32"), want: []string{"error: has the virtual IP 192.0.2.100 on the interface eth0 already"}},
		"not tested": {host: "m1", spec: spec("192.0.2.100", ""), before: func(s *conntest.Sim) {
			on("192.0.2.11/24")(s)
			s.ForbidForwarding()
		}, want: []string{"note: not tested whether 192.0.2.100 is unused: sshd forwards no connections"}},
		"of the cluster": {host: "m1", spec: spec("192.0.2.100", ""), before: func(s *conntest.Sim) {
			s.SetMachine(func(m *conntest.Machine) { m.Addresses = []string{"192.0.2.11/24", "192.0.2.100/32"} })
			s.AddFile(part.KubeVIPPod, "# Written by kubexm.\n", 0o600)
		}},
	})
	hold(t, "ports", map[string]row{
		"metrics": {host: "m1", spec: spec("192.0.2.100", ""), before: listening(`tcp LISTEN 0 128 *:2112 *:* users:(("exporter",pid=9,fd=3))`),
			want: []string{"error: port 2112, which kube-vip needs, is taken by exporter (process 9)"}},
		"metrics, on a worker": {host: "w1", spec: spec("192.0.2.100", ""), before: listening(`tcp LISTEN 0 128 *:2112 *:* users:(("exporter",pid=9,fd=3))`)},
	})
}

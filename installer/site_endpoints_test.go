package installer_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// TestEveryEndpoint creates a cluster with each load balancer that kubexm installs, each kind of
// etcd that it installs, and each IP family. A second run changes nothing, and a deletion
// restores the hosts. -short takes every third.
func TestEveryEndpoint(t *testing.T) {
	front := "controlPlaneEndpoint: {domain: api.site.example, address: VIP}\n  loadBalancer: {external: {type: %s, keepalived: {interface: eth0}}%s}"
	endpoints := []struct{ name, text string }{
		{"kubexm-kh", fmt.Sprintf(front, "kubexm-kh", "")},
		{"kubexm-kn", fmt.Sprintf(front, "kubexm-kn", "")},
		{"haproxy on workers", "loadBalancer: {internal: {type: haproxy}}"},
		{"nginx on workers", "loadBalancer: {internal: {type: nginx}}"},
		{"kube-vip", "controlPlaneEndpoint: {domain: api.site.example, address: VIP}\n  loadBalancer: {internal: {type: kube-vip, kubeVip: {interface: eth0}}}"},
		{"both", fmt.Sprintf(front, "kubexm-kh", ", internal: {type: nginx}")},
	}
	families := []struct{ name, net, ranges string }{
		{"IPv4", "192.0.2.", ""},
		{"IPv6", "2001:db8::", ", kubePodsCIDR: ['fd00:10::/56'], kubeServiceCIDR: ['fd00:20::/112']"},
	}
	n := 0
	for _, e := range endpoints {
		for _, store := range []string{"kubeadm", "kubexm"} {
			for _, f := range families {
				if n++; testing.Short() && n%3 != 0 {
					continue
				}
				t.Run(e.name+" "+store+" "+f.name, func(t *testing.T) {
					balancers, roles := "", ""
					if strings.Contains(e.text, "external") {
						balancers = "    - {name: b1, address: 192.0.2.31, internalAddress: 'NET31'}\n    - {name: b2, address: 192.0.2.32, internalAddress: 'NET32'}\n"
						roles = ", loadbalancer: [b1, b2]"
					}
					config := `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: r1, address: 192.0.2.10, internalAddress: 'NET10'}
    - {name: m1, address: 192.0.2.11, internalAddress: 'NET11'}
    - {name: m2, address: 192.0.2.12, internalAddress: 'NET12'}
    - {name: m3, address: 192.0.2.13, internalAddress: 'NET13'}
    - {name: w1, address: 192.0.2.21, internalAddress: 'NET21'}
` + balancers + `  ssh: {user: root, password: secret}
  roleGroups: {registry: [r1], etcd: [m1, m2, m3], master: ["m[1:3]"], worker: [w1]` + roles + `}
  ` + e.text + `
  kubernetes: {version: v1.34.10, kubeProxy: {mode: iptables}}
  etcd: {type: ` + store + `}
  network: {plugin: flannel` + f.ranges + `}
  bundle:
    operatingSystems:
      - {name: debian, releases: ["12"]}
`
					config = strings.NewReplacer("NET", f.net, "VIP", "'"+f.net+"100'").Replace(config)
					synctest.Test(t, func(t *testing.T) {
						s := siteOf(t, config, "")
						for _, h := range s.Cluster.Spec.Hosts {
							s.Sims[h.Name].SetMachine(func(m *conntest.Machine) { m.Addresses = append(m.Addresses, h.InternalAddress[0]+"/24") })
						}
						first := s.State(true)
						s.Must(pipeline.Create, "create")
						s.Must(pipeline.Create, "create again")
						if ran := s.ran(); len(ran) > 0 {
							t.Errorf("a second creation ran %q", ran)
						}
						s.Must(pipeline.Delete, "delete")
						s.Same("a deletion restores the hosts", first, s.State(true))
						if on := s.Kube.VIPHosts(); len(on) > 0 {
							t.Errorf("the virtual IP is left on %q", on)
						}
					})
				})
			}
		}
	}
}

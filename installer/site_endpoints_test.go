package installer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
)

// TestEveryEndpoint creates a cluster with each load balancer that kubexm installs, each kind of
// etcd, and each IP family. A second run changes nothing, and a deletion restores the hosts. An
// etcd that exists meets each load balancer once, and both families. -short takes every sixth.
func TestEveryEndpoint(t *testing.T) {
	t.Parallel()
	front := "controlPlaneEndpoint: {domain: api.site.example, address: VIP}\n  loadBalancer: {external: {type: %s, keepalived: {interface: eth0}}%s}"
	endpoints := []struct{ name, text string }{
		{"kubexm-kh", fmt.Sprintf(front, "kubexm-kh", "")},
		{"kubexm-kn", fmt.Sprintf(front, "kubexm-kn", "")},
		{"haproxy on workers", "loadBalancer: {internal: {type: haproxy}}"},
		{"nginx on workers", "loadBalancer: {internal: {type: nginx}}"},
		{"kube-vip", "controlPlaneEndpoint: {domain: api.site.example, address: VIP}\n  loadBalancer: {internal: {type: kube-vip, kubeVip: {interface: eth0}}}"},
		{"both", fmt.Sprintf(front, "kubexm-kh", ", internal: {type: nginx}")},
	}
	families := []struct{ name, net, etcd, ranges string }{
		{"IPv4", "192.0.2.", "192.0.2.41", ""},
		{"IPv6", "2001:db8::", "[2001:db8::41]", ", kubePodsCIDR: ['fd00:10::/56'], kubeServiceCIDR: ['fd00:20::/112']"},
	}
	stores := []struct{ name, text string }{
		{"kubeadm", "type: kubeadm"}, {"kubexm", "type: kubexm"},
		{"external", "type: external, external: {endpoints: ['http://ETCD:2379']}"}, // without TLS it needs no files
	}
	n := 0
	for i, e := range endpoints {
		for _, store := range stores {
			for j, f := range families {
				external := store.name == "external"
				if external && (i+j)%2 != 0 {
					continue
				}
				if n++; testing.Short() && n%6 != 0 {
					continue
				}
				t.Run(e.name+" "+store.name+" "+f.name, func(t *testing.T) {
					balancers, roles := "", ""
					if strings.Contains(e.text, "external") {
						balancers = "    - {name: b1, address: 192.0.2.31, internalAddress: 'NET31'}\n    - {name: b2, address: 192.0.2.32, internalAddress: 'NET32'}\n"
						roles = ", loadbalancer: [b1, b2]"
					}
					members := ", etcd: [m1, m2, m3]"
					if external {
						members = ""
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
  roleGroups: {registry: [r1]` + members + `, master: ["m[1:3]"], worker: [w1]` + roles + `}
  ` + e.text + `
  kubernetes: {version: v1.34.10, kubeProxy: {mode: iptables}}
  etcd: {` + store.text + `}
  network: {plugin: flannel` + f.ranges + `}
  bundle:
    operatingSystems:
      - {name: debian, releases: ["12"]}
`
					config = strings.NewReplacer("NET", f.net, "VIP", "'"+f.net+"100'", "ETCD", f.etcd).Replace(config)
					synctest.Test(t, func(t *testing.T) {
						s := siteOf(t, config, "")
						for _, h := range s.Cluster.Spec.Hosts {
							s.Sims[h.Name].SetMachine(func(m *conntest.Machine) { m.Addresses = append(m.Addresses, h.InternalAddress[0]+"/24") })
						}
						first := s.State(true)
						for _, when := range []string{"create", "create again"} {
							if err := s.Run(pipeline.Create, withoutEtcd(external)); err != nil {
								t.Fatalf("%s: %v", when, err)
							}
						}
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

// withoutEtcd has nobody look for an etcd that exists: it is not simulated.
func withoutEtcd(external bool) func(*plan.Node) {
	return func(n *plan.Node) {
		if external && n.Step.Meta().Name == "etcd.check-external" {
			n.Step = op.Check("etcd.check-external", func(context.Context, *steps.Host) (steps.Findings, error) { return nil, nil })
		}
	}
}

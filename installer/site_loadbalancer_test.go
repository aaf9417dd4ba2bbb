package installer_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// TestLoadBalancers: kubexm installs them before the first API server, gives haproxy the
// cluster's CA after it, changes nothing in a second run, and removes all of it.
func TestLoadBalancers(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"load-balancers": "haproxy", "load-balancers-nginx": "nginx"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite(t, name)
				first := s.State(true)
				s.Must(pipeline.Create, "create")
				for _, b := range []string{"b1", "b2"} {
					for _, unit := range []string{program + ".service", "keepalived.service"} {
						if u := s.Sims[b].Unit(unit); !u.Active || !u.Enabled || u.Masked {
							t.Errorf("%s: %s: %+v", b, unit, u)
						}
					}
					ca, probe := s.Sims[b].Read("/etc/kubexm/loadbalancer/ca.crt"), s.Sims[b].Read("/etc/kubexm/loadbalancer/probe.pem")
					if trusts := ca == s.Sims["m1"].Read("/etc/kubernetes/pki/ca.crt"); trusts != (program == "haproxy") || trusts != strings.Contains(probe, "PRIVATE KEY") {
						t.Errorf("%s: has the cluster's CA: %v", b, trusts)
					}
				}
				for _, h := range []string{"m1", "m2", "m3", "w1"} {
					if etc := s.Sims[h].Read("/etc/hosts"); !strings.Contains(etc, "192.0.2.100 api.site.example\n") {
						t.Errorf("%s: /etc/hosts:\n%s", h, etc)
					}
				}
				for _, b := range []string{"b1", "b2"} { // what runs there by now
					s.Sims[b].SetMachine(func(m *conntest.Machine) {
						m.Ports = append(m.Ports, `tcp LISTEN 0 128 0.0.0.0:6443 0.0.0.0:* users:(("`+program+`",pid=700,fd=3))`)
					})
				}
				s.Warnings = nil
				s.Must(pipeline.Create, "create again")
				if ran := s.ran(); len(ran) > 0 || len(s.Warnings) > 0 {
					t.Errorf("a second creation ran %q, and warned %q", ran, s.Warnings)
				}
				s.Must(pipeline.Delete, "delete")
				s.Same("a deletion restores the hosts", first, s.State(true))
			})
		})
	}
}

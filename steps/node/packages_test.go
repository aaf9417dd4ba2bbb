package node_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestLoadBalancerPackages, and wherever the config names them.
func TestLoadBalancerPackages(t *testing.T) {
	const two = "  hosts:\n    - {name: node1, address: 192.0.2.11}\n    - {name: lb1, address: 192.0.2.12}\n"
	base := strings.Replace(steptest.Small, "  hosts:\n    - {name: node1, address: 192.0.2.11}\n", two, 1)
	base = strings.Replace(base, "    registry: [node1]\n", "    registry: [node1]\n    loadbalancer: [lb1]\n", 1) +
		"  bundle: {operatingSystems: [{name: debian, releases: [\"12\"]}]}\n  controlPlaneEndpoint: {address: 192.0.2.100}\n  loadBalancer: {external: {type: kubexm-kh}}\n"
	repositories := steptest.Artifacts{Repositories: map[string]steptest.Repository{
		"debian-12": {Want: []string{"haproxy", "keepalived", "socat"}, Packages: []steptest.Package{{Name: "haproxy", Version: "2"}, {Name: "keepalived", Version: "2"}, {Name: "socat", Version: "1"}}},
	}}
	for name, want := range map[string]struct {
		more  string
		hosts map[string][]string
	}{
		"by role": {"", map[string][]string{"node1": {"socat"}, "lb1": {"haproxy", "keepalived", "socat"}}},
		"by name": {"  system: {debs: [haproxy]}\n", map[string][]string{"node1": {"haproxy", "socat"}, "lb1": {"haproxy", "keepalived", "socat"}}},
	} {
		c := steptest.Cluster(t, base+want.more)
		for _, h := range c.Spec.Hosts {
			kase := steptest.Case{Cluster: c, Host: h, Before: (*conntest.Sim).EndJobsAtOnce, Artifacts: repositories}
			s := kase.Sim(t)
			step := node.InstallPackages(c)
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			for _, p := range []string{"haproxy", "keepalived", "socat"} {
				if got := s.PackageVersion(p) != ""; got != slices.Contains(want.hosts[h.Name], p) {
					t.Errorf("%s: %s has %s: %t", name, h.Name, p, got)
				}
			}
		}
	}
}

func TestPackagesKeepTheirLaws(t *testing.T) {
	c := steptest.Cluster(t, steptest.Small+"  bundle: {operatingSystems: [{name: debian, releases: [\"11\", \"12\"]}, {name: rocky, releases: [\"9.4\"]}]}\n")
	if got, want := node.Systems(c), []string{"debian-11", "debian-12", "rocky-9.4"}; !slices.Equal(got, want) {
		t.Errorf("systems are %q", got)
	}
	steptest.Ensure(t, steptest.Case{
		Cluster: c, Every: 5, Before: (*conntest.Sim).EndJobsAtOnce,
		Artifacts: steptest.Artifacts{Repositories: map[string]steptest.Repository{
			"debian-12": {Want: []string{"socat"}, Packages: []steptest.Package{{Name: "socat", Version: "1.7", Depends: []string{"libwrap"}}, {Name: "libwrap", Version: "7.6"}}},
		}},
	}, node.InstallPackages(c), node.RemovePackages(c))
}

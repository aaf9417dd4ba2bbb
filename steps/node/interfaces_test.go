package node_test

import (
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/node"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// TestLeaveInterfaces: NetworkManager leaves those of calico alone, where it runs.
func TestLeaveInterfaces(t *testing.T) {
	c := steptest.Cluster(t, strings.Replace(steptest.Small, "plugin: flannel", "plugin: calico", 1))
	const file = "/etc/NetworkManager/conf.d/90-kubexm-pod-network.conf"
	for name, runs := range map[string]bool{"NetworkManager": true, "NetworkManager, stopped": false} {
		t.Run(name, func(t *testing.T) {
			kase := steptest.Case{Cluster: c, Before: func(s *conntest.Sim) {
				distribution(s)
				s.AddUnit("NetworkManager.service", clockUnit, runs, runs)
			}}
			if runs {
				steptest.Ensure(t, kase, node.LeaveInterfaces(c), node.ManageInterfaces(c))
			}
			s := kase.Sim(t)
			distribution(s)
			s.AddUnit("NetworkManager.service", clockUnit, runs, runs)
			step := node.LeaveInterfaces(c)
			if err := step.Run(t.Context(), kase.NewHost(t, s, step)); err != nil {
				t.Fatal(err)
			}
			const want = "# Written by kubexm.\n[keyfile]\nunmanaged-devices+=interface-name:cali*;interface-name:tunl*;interface-name:vxlan.calico;interface-name:vxlan-v6.calico\n"
			if _, there := s.File(file); there != runs || runs && s.Read(file) != want {
				t.Errorf("%s is there: %t\n%s", file, there, s.Read(file))
			}
		})
	}
}

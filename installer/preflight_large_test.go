package installer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/installer/engine"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/testdata/fair"
)

// TestPreflightOfManyHosts looks at a hundred simulated hosts, each reaching all that
// it has to: every host is asked what it is, and every check is made. Two clones
// among them are found.
func TestPreflightOfManyHosts(t *testing.T) {
	t.Parallel()
	const n = 100
	s := siteOf(t, fmt.Sprintf(`
apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  hosts:
    - {name: r1, address: 192.0.2.10}
    - {name: m1, address: 192.0.2.11}
    - {name: m2, address: 192.0.2.12}
    - {name: m3, address: 192.0.2.13}
%s  ssh: {user: root, password: secret}
  roleGroups: {registry: [r1], master: [m1, m2, m3], worker: ['w[1:%d]']}
  kubernetes: {version: v1.35.1}
  etcd: {type: kubeadm}
  network: {plugin: flannel, kubePodsCIDR: 10.64.0.0/10}
`, workersOf(n-4), n-4), "")
	s.Parallel = 32
	for i, h := range s.Cluster.Spec.Hosts {
		s.Sims[h.Name].SetMachine(func(m *conntest.Machine) {
			m.Addresses = []string{h.Address + "/16"}
			m.MachineID = fmt.Sprintf("%032d", min(i, n-2)) // the last two are clones
		})
	}
	clock := fair.Start()
	err := s.Run(pipeline.Preflight, nil)
	clock.Within(t, 10*time.Second) // less than two, where nothing else is at work
	took := clock.Took()
	looked := 0
	for _, e := range s.Events {
		if e.Outcome == engine.Checked {
			looked++
		}
	}
	want := fmt.Sprintf("the machine id %032d is the same on w%d and w%d", n-2, n-5, n-4)
	if err == nil || err.Error() != "preflight/check-hosts/preflight.duplicates on r1: "+want+"; "+want { // one of each
		t.Errorf("found %v, want %s", err, want)
	}
	t.Logf("%d checks on %d hosts in %s", looked, n, took)
	if looked < 20*n {
		t.Errorf("%d checks of %d hosts", looked, n)
	}
}

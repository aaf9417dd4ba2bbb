package steptest

import (
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// LoadBalancers puts the programs of a load balancer host on s. Each accepts a
// configuration file that exists and is not empty, as their option to test one does.
func LoadBalancers(s *conntest.Sim) {
	for _, name := range []string{"haproxy", "nginx", "keepalived"} {
		s.HandleProgram(name, func(c connector.Cmd, _ []byte) (connector.Result, bool) {
			if file := strings.TrimPrefix(c.Argv[len(c.Argv)-1], "-c"); s.Read(file) == "" {
				return connector.Result{Exit: 1, Stderr: fmt.Appendf(nil, "%s: cannot read %s", c.Argv[0], file)}, true
			}
			return connector.Result{}, true
		})
	}
}

// HoldsVIP reports whether some machine answers at the address of the endpoint: a load
// balancer host of the cluster, where kubexm installs them, with both its services, or the
// master on which kube-vip runs.
func (k *Kube) HoldsVIP() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.holdsVIP()
}

func (k *Kube) holdsVIP() bool {
	e := part.EndpointOf(k.cluster)
	if e.Front == part.KubeVIPFront && !k.stands {
		return k.vipHolder() != ""
	}
	if e.Front != part.HostsFront || k.stands {
		return true
	}
	for _, name := range part.Balancers.Names(k.cluster) {
		if s := k.hosts[name]; s != nil && s.Unit("keepalived.service").Active && s.Unit(string(e.Program)+".service").Active {
			return true
		}
	}
	return false
}

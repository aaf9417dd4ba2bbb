package steptest

import (
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// engine is what is different from one container runtime to another.
type engine struct {
	// mirrored tells whether images of an upstream registry are asked of the site's.
	mirrored func(s *conntest.Sim, domain string) bool
	// programs are its own, beside crictl.
	programs map[string]func(*Kube, call) connector.Result
}

// engines are the runtimes that hosts can have, by name.
var engines = map[string]engine{
	"containerd": {
		mirrored: func(s *conntest.Sim, domain string) bool {
			return s.Read("/etc/containerd/certs.d/"+domain+"/hosts.toml") != ""
		},
		programs: map[string]func(*Kube, call) connector.Result{"ctr": (*Kube).ctr},
	},
}

func (k *Kube) engine() engine { return engines[part.RuntimeOf(k.cluster).Name] }

// engineRuns tells whether the container runtime of a host does.
func (k *Kube) engineRuns(s *conntest.Sim) bool { return s.Unit(part.RuntimeOf(k.cluster).Unit).Active }

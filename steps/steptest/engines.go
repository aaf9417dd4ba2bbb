package steptest

import (
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

// engine is the runtime-specific part of a simulated container runtime.
type engine struct {
	// mirrored reports whether images of an upstream registry are pulled from the site's.
	mirrored func(s *conntest.Sim, domain string) bool
	// programs are the runtime's own programs besides crictl.
	programs map[string]func(*Kube, call) connector.Result
}

// engines are the supported runtimes by name.
var engines = map[string]engine{
	"containerd": {
		mirrored: func(s *conntest.Sim, domain string) bool {
			return s.Read("/etc/containerd/certs.d/"+domain+"/hosts.toml") != ""
		},
		programs: map[string]func(*Kube, call) connector.Result{"ctr": (*Kube).ctr},
	},
}

func (k *Kube) engine() engine { return engines[part.RuntimeOf(k.cluster).Name] }

// engineRuns reports whether the container runtime of a host is running.
func (k *Kube) engineRuns(s *conntest.Sim) bool { return s.Unit(part.RuntimeOf(k.cluster).Unit).Active }

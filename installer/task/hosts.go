package task

import (
	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
)

// nodes returns the hosts that run a kubelet, each once, masters first.
func nodes(s plan.Scope) []manifest.Host { return s.Only(part.Nodes.Hosts(s.Want)) }

// hasPackages reports whether the bundle contains packages of the hosts' operating systems.
func hasPackages(s plan.Scope) bool { return len(s.Want.Spec.Bundle.OperatingSystems) > 0 }

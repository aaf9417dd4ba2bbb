package task

import (
	"slices"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/manifest"
)

// nodes gives the hosts that run a kubelet, each once, masters first.
func nodes(s plan.Scope) []manifest.Host {
	out := slices.Clone(s.Role(manifest.RoleMaster))
	for _, w := range s.Role(manifest.RoleWorker) {
		if !slices.ContainsFunc(out, func(h manifest.Host) bool { return h.Name == w.Name }) {
			out = append(out, w)
		}
	}
	return out
}

// hasPackages tells whether the bundle holds packages of the hosts' operating systems.
func hasPackages(s plan.Scope) bool { return len(s.Cluster.Spec.Bundle.OperatingSystems) > 0 }

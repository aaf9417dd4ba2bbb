package network

import (
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
)

// Plugin is a pod network plugin.
type Plugin struct {
	Install []steps.Step // run on a master; nil without a plugin, or if kubexm cannot install it yet
}

// Of returns the pod network plugin of a config.
func Of(c *manifest.Cluster) Plugin {
	switch part.NetworkOf(c).Name {
	case "flannel":
		return Plugin{Install: []steps.Step{Flannel(c)}}
	}
	return Plugin{}
}

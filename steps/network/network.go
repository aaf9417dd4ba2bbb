package network

import (
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
)

// Plugin is how a pod network is brought to a cluster.
type Plugin struct {
	Install []steps.Step // on a master; none where there are no steps yet, or no plugin
}

// Of gives the pod network of a config.
func Of(c *manifest.Cluster) Plugin {
	switch part.NetworkOf(c).Name {
	case "flannel":
		return Plugin{Install: []steps.Step{Flannel(c)}}
	}
	return Plugin{}
}

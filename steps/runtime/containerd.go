package runtime

import (
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runtime/containerd"
	"github.com/mensylisir/kubexm/steps/runtime/cri"
)

func ofContainerd(c *manifest.Cluster) Engine {
	return Engine{
		Install: containerd.Binaries(), Remove: containerd.RemoveBinaries(), Restart: containerd.Restart(),
		Start:   func(from *cri.Mirrors) steps.Step { return containerd.Service(c, from) },
		Stop:    func(from *cri.Mirrors, keep bool) steps.Step { return containerd.StopService(c, from, keep) },
		Preload: func(names []string, at Names, tags Tags) steps.Step { return containerd.Preload(c, names, at, tags) },
		Import:  func(needs []manifest.Need) steps.Step { return containerd.Import(c, needs) },
	}
}

package part

import (
	"cmp"

	"github.com/mensylisir/kubexm/manifest"
)

// Docker is the name of the runtime that brings dockerd to the nodes.
const Docker = "docker"

// Runtime is what runs the containers of a node. Of one that is not supported only the
// name is known.
type Runtime struct {
	Name      string
	Supported bool   // there are steps that install it
	Socket    string // where the kubelet and crictl reach it
	DataDir   string // with images and what runs of them
}

// RuntimeOf gives the runtime of a config.
func RuntimeOf(c *manifest.Cluster) Runtime {
	r := c.Spec.Runtime
	if name := cmp.Or(r.Type, "containerd"); name != "containerd" {
		return Runtime{Name: name}
	}
	return Runtime{
		Name: "containerd", Supported: true, Socket: "unix:///run/containerd/containerd.sock",
		DataDir: cmp.Or(r.Containerd.DataDir, "/var/lib/containerd"),
	}
}

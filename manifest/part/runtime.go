package part

import (
	"cmp"

	"github.com/mensylisir/kubexm/manifest"
)

// Docker is the name of the runtime that installs dockerd on the nodes.
const Docker = "docker"

// Runtime is a container runtime. A runtime that is not supported has only Name and Components.
type Runtime struct {
	Name      string
	Supported bool // kubexm has steps that install it
	// Components are the components in the bundle: first the component that
	// spec.runtime.version refers to.
	Components []string
	Unit       string // systemd unit
	Program    string // executable of Unit; it is in the record of a host from the start, and reports its version
	Config     string // configuration file
	Socket     string // CRI socket, for the kubelet and crictl
	DataDir    string // directory of images and containers
}

// RuntimeOf returns the runtime of a config.
func RuntimeOf(c *manifest.Cluster) Runtime {
	name := cmp.Or(c.Spec.Runtime.Type, "containerd")
	for _, r := range runtimes(c.Spec.Runtime) {
		if r.Name == name {
			return r
		}
	}
	return Runtime{Name: name}
}

// Runtimes lists the supported runtimes with default settings. Any of them may have been
// installed on a host.
func Runtimes() []Runtime {
	var out []Runtime
	for _, r := range runtimes(manifest.Runtime{}) {
		if r.Supported {
			out = append(out, r)
		}
	}
	return out
}

func runtimes(r manifest.Runtime) []Runtime {
	return []Runtime{
		{
			Name: "containerd", Supported: true, Components: []string{"containerd", "runc", "nerdctl"},
			Unit: "containerd.service", Program: "/usr/local/bin/containerd",
			Config: "/etc/containerd/config.toml", Socket: "unix:///run/containerd/containerd.sock",
			DataDir: cmp.Or(r.Containerd.DataDir, "/var/lib/containerd"),
		},
		{Name: Docker, Components: []string{"docker", "cri-dockerd"}},
		{Name: "cri-o", Components: []string{"cri-o"}},
		{Name: "isulad", Components: []string{"isulad"}},
	}
}

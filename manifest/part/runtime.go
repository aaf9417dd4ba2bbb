package part

import (
	"cmp"

	"github.com/mensylisir/kubexm/manifest"
)

// Docker is the name of the runtime that brings dockerd to the nodes.
const Docker = "docker"

// Runtime is what runs the containers of a node. Of one that is not supported the name
// is known and Components, and nothing else.
type Runtime struct {
	Name      string
	Supported bool // there are steps that install it
	// Components are what the bundle has for it: the one that spec.runtime.version is the
	// version of, and those beside it.
	Components []string
	Unit       string // of systemd, which runs it
	Program    string // that Unit runs: it is on record of a host from the beginning, and tells its version
	Config     string // the file that it is configured by
	Socket     string // where the kubelet and crictl reach it
	DataDir    string // with images and what runs of them
}

// RuntimeOf gives the runtime of a config.
func RuntimeOf(c *manifest.Cluster) Runtime {
	name := cmp.Or(c.Spec.Runtime.Type, "containerd")
	for _, r := range runtimes(c.Spec.Runtime) {
		if r.Name == name {
			return r
		}
	}
	return Runtime{Name: name}
}

// Runtimes lists those that are supported, as they are without settings: any of them may
// have been installed.
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

package cri

import (
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Crictl returns crictl, the command line client of the Container Runtime Interface (CRI).
func Crictl() op.Resource {
	return op.Blob{Path: "/usr/local/bin/crictl", Need: manifest.Need{Kind: manifest.Binary, Name: "crictl/crictl"}}
}

// CrictlConfig returns crictl's configuration with the socket of the runtime.
func CrictlConfig(socket string) op.Resource {
	return op.Text("/etc/crictl.yaml", func(context.Context, *steps.Host) ([]byte, error) {
		return []byte("runtime-endpoint: " + socket + "\nimage-endpoint: " + socket + "\ntimeout: 30\n"), nil
	})
}

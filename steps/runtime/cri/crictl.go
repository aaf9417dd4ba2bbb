package cri

import (
	"context"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// Crictl is the program that asks a runtime by the interface that the kubelet has.
func Crictl() op.Resource {
	return op.Blob{Path: "/usr/local/bin/crictl", Need: manifest.Need{Kind: manifest.Binary, Name: "crictl/crictl"}}
}

// CrictlConfig has crictl reach the runtime at a socket.
func CrictlConfig(socket string) op.Resource {
	return op.Text("/etc/crictl.yaml", func(context.Context, *steps.Host) ([]byte, error) {
		return []byte("runtime-endpoint: " + socket + "\nimage-endpoint: " + socket + "\ntimeout: 30\n"), nil
	})
}

package kubeadm

import (
	"bytes"
	"context"
	"embed"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

//go:embed templates
var files embed.FS

func resources() []op.Resource {
	var rs []op.Resource
	for _, name := range []string{"kubeadm", "kubelet", "kubectl"} {
		rs = append(rs, op.Blob{Path: "/usr/local/bin/" + name, Need: manifest.Need{Kind: manifest.Binary, Name: name}})
	}
	return append(rs,
		op.Dir{Path: "/usr/libexec/kubernetes", Own: true}, // the kubelet creates its plugin folder in it
		op.File{Path: "/etc/systemd/system/kubelet.service", Attr: runner.Attr{Mode: 0o600, Owner: "root", Group: "root"}, Body: func(_ context.Context, h *steps.Host) ([]byte, error) {
			unit, err := files.ReadFile("templates/kubelet.service")
			return bytes.ReplaceAll(unit, []byte("RUNTIME"), []byte(part.RuntimeOf(h.Cluster).Unit)), err
		}},
		op.Unit{Name: "kubelet.service", Idle: true}, // kubeadm starts it, once it has a configuration
	)
}

// Install installs kubeadm, kubelet and kubectl, and the kubelet's unit, on a node.
func Install() steps.Step { return op.Ensure("kubeadm.install", resources(), op.Upload) }

// Uninstall removes kubeadm, kubelet and kubectl, and the kubelet's unit, from a node.
func Uninstall() steps.Step { return op.Remove("kubeadm.uninstall", resources()) }

package kubeadm

import (
	"bytes"
	"context"
	"embed"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
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
			unit = bytes.ReplaceAll(unit, []byte("UNREACHABLE"), []byte(unreachable(h.Cluster)))
			return bytes.ReplaceAll(unit, []byte("RUNTIME"), []byte(part.RuntimeOf(h.Cluster).Unit)), err
		}},
		op.Unit{Name: "kubelet.service", Idle: true}, // kubeadm starts it, once it has a configuration
	)
}

// unreachable returns the lines of the kubelet's unit that add routes. Their protocol is the kernel's,
// whose routes BIRD does not learn.
func unreachable(c *manifest.Cluster) string {
	var b strings.Builder
	for _, r := range part.Unreachable(c) {
		b.WriteString("ExecStartPre=-/sbin/ip " + controlplane.IPFamily(r) + " route replace unreachable " + r + " metric " + part.UnreachableMetric + " proto kernel\n")
	}
	return b.String()
}

// Install installs kubeadm, kubelet and kubectl, and the kubelet's unit, on a node.
func Install() steps.Step { return op.Ensure("kubeadm.install", resources(), op.Upload) }

// Uninstall removes kubeadm, kubelet and kubectl, and the kubelet's unit, from a node.
func Uninstall() steps.Step { return op.Remove("kubeadm.uninstall", resources()) }

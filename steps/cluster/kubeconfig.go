package cluster

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

const kubeconfigName = controlplane.OperatorConf

// KubeconfigPath is the administrator's kubeconfig on the machine kubexm runs on.
func KubeconfigPath(workdir string) string { return filepath.Join(workdir, kubeconfigName) }

// FetchKubeconfig writes the administrator's kubeconfig to the cluster's folder
// on the workdir host. Its server is an address: only the cluster's hosts resolve
// the control plane's name. It is built from the fields that kubeadm writes; the
// step fails with *ErrKubeconfig if the master's file holds any other, or if its CA
// is not the cluster's.
func FetchKubeconfig(c *manifest.Cluster) steps.Step {
	return keepHere("kubernetes.fetch-kubeconfig", func(ctx context.Context, h *steps.Host) (map[string][]byte, error) {
		here, err := fetched(ctx, c, h)
		return map[string][]byte{kubeconfigName: here}, err
	})
}

// InstallKubeconfig writes the administrator's kubeconfig to ~/.kube/config of the
// login user on the master, as that user: root would follow the user's links. A file
// that exists there is restored by the removal.
func InstallKubeconfig() steps.Step {
	return op.EnsureOn("kubernetes.install-kubeconfig", userKubeconfig)
}

// RemoveKubeconfig is the inverse of InstallKubeconfig.
func RemoveKubeconfig() steps.Step {
	return op.RemoveOn("kubernetes.remove-kubeconfig", userKubeconfig)
}

func userKubeconfig(h *steps.Host) []op.Resource {
	dir := "/root/.kube"
	if h.Login.User != "root" && h.Login.User != "" {
		dir = path.Join("/home", h.Login.User, ".kube")
	}
	return []op.Resource{
		op.Dir{Path: dir, Attr: runner.Attr{Mode: 0o700, Owner: h.Login.User}, Own: true, Login: true}, // kubectl keeps a cache in it
		op.File{Path: dir + "/config", Attr: runner.Attr{Mode: 0o600, Owner: h.Login.User}, Secret: true, Login: true,
			Body: func(ctx context.Context, h *steps.Host) ([]byte, error) {
				text, err := h.ReadFile(ctx, kubectl.AdminConf)
				if errors.Is(err, fs.ErrNotExist) {
					err = op.Later(err)
				}
				return text, err
			}},
	}
}

// endpointFromHere is where the machine that kubexm runs on reaches the control
// plane; "" is under its name, as everybody does.
func endpointFromHere(c *manifest.Cluster, master *steps.Host) string {
	switch e := part.EndpointOf(c); {
	case e.SiteDNS:
		return ""
	case e.VIP != "":
		return e.VIP
	}
	return master.Address
}

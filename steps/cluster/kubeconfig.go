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

// KubeconfigPath returns the path of the administrator's kubeconfig on the workdir host.
func KubeconfigPath(workdir string) string { return filepath.Join(workdir, kubeconfigName) }

// FetchKubeconfig writes the administrator's kubeconfig to the cluster's folder
// on the workdir host. Its server is an address: only the cluster's hosts resolve
// the control plane's name. It is built from the fields that kubeadm writes. The
// step fails (*KubeconfigError) if the master's file contains any other field, or if its
// CA is not the cluster's.
func FetchKubeconfig(c *manifest.Cluster) steps.Step {
	return writeWorkdir("kubernetes.fetch-kubeconfig", func(ctx context.Context, h *steps.Host) (map[string][]byte, error) {
		text, err := fetched(ctx, c, h)
		return map[string][]byte{kubeconfigName: text}, err
	})
}

// InstallKubeconfig writes the administrator's kubeconfig to ~/.kube/config of the
// login user on the master, as that user: root would follow the user's symbolic links. An
// existing file is put on record, and the removal restores it.
func InstallKubeconfig() steps.Step {
	return op.EnsureOn("kubernetes.install-kubeconfig", userKubeconfig)
}

// RemoveKubeconfig removes the administrator's kubeconfig from ~/.kube/config of the login
// user, and restores a file that existed before.
func RemoveKubeconfig() steps.Step {
	return op.RemoveOn("kubernetes.remove-kubeconfig", userKubeconfig)
}

func userKubeconfig(h *steps.Host) []op.Resource {
	dir := "/root/.kube"
	if h.Login.User != "root" && h.Login.User != "" {
		dir = path.Join("/home", h.Login.User, ".kube")
	}
	return []op.Resource{
		op.Dir{Path: dir, Attr: runner.Attr{Mode: 0o700, Owner: h.Login.User}, Own: true, Login: true}, // kubectl stores a cache in it
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

// operatorEndpoint returns the address at which the workdir host reaches the control
// plane; "" is the DNS name of the endpoint.
func operatorEndpoint(c *manifest.Cluster, master *steps.Host) string {
	switch e := part.EndpointOf(c); {
	case e.SiteDNS:
		return ""
	case e.VIP != "":
		return e.VIP
	}
	return master.Address
}

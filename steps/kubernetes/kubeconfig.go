package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

const kubeconfigName = "kubeconfig"

// KubeconfigPath is the administrator's kubeconfig on the machine kubexm runs on.
func KubeconfigPath(workdir string) string { return filepath.Join(workdir, kubeconfigName) }

// FetchKubeconfig brings the administrator's kubeconfig to the cluster's folder
// here. It names an address: the control plane's name is in the hosts files of
// the cluster's machines alone, and this is none of them.
func FetchKubeconfig(c *manifest.Cluster) steps.Step {
	return keepHere("kubernetes.fetch-kubeconfig", func(ctx context.Context, h *steps.Host) (map[string][]byte, error) {
		text, err := h.ReadFile(ctx, kubeadm.AdminConf)
		if err != nil {
			return nil, err
		}
		here, err := reachable(text, endpointFromHere(c, h))
		return map[string][]byte{kubeconfigName: here}, err
	})
}

// InstallKubeconfig brings the administrator's kubeconfig to ~/.kube/config of
// the login user on the master. One that is there comes back with the removal.
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
		op.Dir{Path: dir, Attr: runner.Attr{Mode: 0o700, Owner: h.Login.User}, Own: true}, // kubectl keeps a cache in it
		op.File{Path: dir + "/config", Attr: runner.Attr{Mode: 0o600, Owner: h.Login.User}, Secret: true,
			Body: func(ctx context.Context, h *steps.Host) ([]byte, error) {
				text, err := h.ReadFile(ctx, kubeadm.AdminConf)
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
	switch cp := c.Spec.ControlPlaneEndpoint; {
	case cp.ExternalDNS:
		return ""
	case cp.Address != "":
		return cp.Address
	}
	return master.Address
}

// reachable gives a kubeconfig whose clusters are reached at address, and are
// still held to be who the name in it says.
func reachable(kubeconfig []byte, address string) ([]byte, error) {
	if address == "" {
		return kubeconfig, nil
	}
	var doc map[string]any
	if err := yaml.Unmarshal(kubeconfig, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", kubeadm.AdminConf, err)
	}
	clusters, _ := doc["clusters"].([]any)
	for _, entry := range clusters {
		e, _ := entry.(map[string]any)
		cluster, _ := e["cluster"].(map[string]any)
		server, _ := cluster["server"].(string)
		u, err := url.Parse(server)
		if err != nil || u.Port() == "" {
			return nil, fmt.Errorf("%s: a cluster with the server %q", kubeadm.AdminConf, server)
		}
		cluster["tls-server-name"] = u.Hostname()
		u.Host = net.JoinHostPort(address, u.Port())
		cluster["server"] = u.String()
	}
	if len(clusters) == 0 {
		return nil, fmt.Errorf("%s: no cluster in it", kubeadm.AdminConf)
	}
	return yaml.Marshal(doc)
}

package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubeadm"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// KubeconfigPath is the administrator's kubeconfig on the machine kubexm runs on.
func KubeconfigPath(workdir string) string { return filepath.Join(workdir, "kubeconfig") }

// FetchKubeconfig brings the administrator's kubeconfig to the cluster's folder
// here, and to ~/.kube/config of the login user on the master. The one here
// names an address: the control plane's name is in the hosts files of the
// cluster's machines alone, and this is none of them.
func FetchKubeconfig(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.fetch-kubeconfig", Timeout: time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			text, err := h.ReadFile(ctx, kubeadm.AdminConf)
			if err != nil {
				return false, err
			}
			want, err := reachable(text, endpointFromHere(c, h))
			if err != nil {
				return false, err
			}
			here, err := os.ReadFile(KubeconfigPath(h.Workdir))
			if err != nil || !bytes.Equal(here, want) {
				return false, nil //nolint:nilerr // written anew
			}
			there, err := h.ReadFile(ctx, kubeDir(h)+"/config")
			if errors.Is(err, fs.ErrNotExist) {
				return false, nil
			}
			return bytes.Equal(there, text), err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			text, err := h.ReadFile(ctx, kubeadm.AdminConf)
			if err != nil {
				return err
			}
			here, err := reachable(text, endpointFromHere(c, h))
			if err != nil {
				return err
			}
			if err := keep(KubeconfigPath(h.Workdir), here); err != nil {
				return err
			}
			a := runner.Attr{Mode: 0o700, Owner: h.Login.User}
			if _, err := h.Mkdir(ctx, kubeDir(h), a); err != nil {
				return err
			}
			a.Mode = 0o600
			return h.WriteFile(ctx, kubeDir(h)+"/config", text, a)
		},
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

// keep writes a secret file whole or not at all.
func keep(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // only its owner may read it
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

func kubeDir(h *steps.Host) string {
	if h.Login.User == "root" || h.Login.User == "" {
		return "/root/.kube"
	}
	return path.Join("/home", h.Login.User, ".kube")
}

// RemoveKubeconfig is the inverse of FetchKubeconfig on the master.
func RemoveKubeconfig() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubernetes.remove-kubeconfig", Timeout: time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			_, err := h.Stat(ctx, kubeDir(h)+"/config")
			if errors.Is(err, fs.ErrNotExist) {
				return true, nil
			}
			return false, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			if err := h.RemoveAll(ctx, kubeDir(h)+"/cache"); err != nil {
				return err
			}
			if err := h.Remove(ctx, kubeDir(h)+"/config"); err != nil {
				return err
			}
			if err := h.RemoveDir(ctx, kubeDir(h)); err != nil && !errors.Is(err, runner.ErrNotEmpty) {
				return err
			}
			return nil
		},
	}
}

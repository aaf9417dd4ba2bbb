package etcd

import (
	"context"
	"os"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/pki"
	"github.com/mensylisir/kubexm/steps/runner"
)

// The files on a master with which its API server authenticates to etcd. They are not in
// kubeadm's own folder, because kubeadm reset empties that.
const (
	clientDir  = "/etc/kubernetes/etcd"
	clientCA   = clientDir + "/ca.crt"
	clientCert = clientDir + "/client.crt"
	clientKey  = clientDir + "/client.key"
)

// ClientFiles returns the paths of these files on each master; "" for a file that the
// cluster does not have.
func ClientFiles(c *manifest.Cluster) (ca, cert, key string) {
	switch part.StoreOf(c).Kind {
	case part.Service:
		return clientCA, clientCert, clientKey
	case part.External:
		e := c.Spec.Etcd.External
		if e.CAFile != "" {
			ca = clientCA
		}
		if e.CertFile != "" {
			cert, key = clientCert, clientKey
		}
	case part.Stacked:
	}
	return ca, cert, key
}

// NeedsClientFiles reports whether masters get client files for etcd.
func NeedsClientFiles(c *manifest.Cluster) bool {
	ca, cert, _ := ClientFiles(c)
	return ca+cert != ""
}

// InstallClientFiles installs the etcd client certificate, its key and the CA certificate on a
// master, for its API server.
func InstallClientFiles(c *manifest.Cluster) steps.Step {
	return op.Ensure("etcd.give-client-keys", clientResources(c))
}

// RemoveClientFiles removes the etcd client certificate, its key and the CA certificate from a
// master.
func RemoveClientFiles(c *manifest.Cluster) steps.Step {
	return op.Remove("etcd.take-client-keys", clientResources(c))
}

func clientResources(c *manifest.Cluster) []op.Resource {
	rs := []op.Resource{op.Dir{Path: clientDir, Attr: runner.Attr{Mode: 0o700}, Own: true}}
	if part.StoreOf(c).Kind == part.Service {
		rs = append(rs, op.Text(clientCA, func(_ context.Context, h *steps.Host) ([]byte, error) {
			cert, _, err := keysOf(h).ca()
			return cert, err
		}))
		return append(rs, pair(clientCert, clientKey, func(*steps.Host) (string, pki.Request) { return apiServer() })...)
	}
	e := c.Spec.Etcd.External
	if e.CAFile != "" {
		rs = append(rs, op.Text(clientCA, localFile(e.CAFile)))
	}
	if e.CertFile != "" {
		rs = append(rs, op.Text(clientCert, localFile(e.CertFile)),
			op.File{Path: clientKey, Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: localFile(e.KeyFile)})
	}
	return rs
}

// localFile reads a file of the workdir host.
func localFile(path string) func(context.Context, *steps.Host) ([]byte, error) {
	return func(context.Context, *steps.Host) ([]byte, error) { return os.ReadFile(path) }
}

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

// The files of a master that its API server reaches the store with. They lie
// beside kubeadm's own: its reset empties that folder.
const (
	clientDir  = "/etc/kubernetes/etcd"
	clientCA   = clientDir + "/ca.crt"
	clientCert = clientDir + "/client.crt"
	clientKey  = clientDir + "/client.key"
)

// ClientFiles are the paths of these on each master; "" is one that there is none of.
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

// NeedsKeys tells whether masters are given any.
func NeedsKeys(c *manifest.Cluster) bool {
	ca, cert, _ := ClientFiles(c)
	return ca+cert != ""
}

// GiveKeys brings them to a master.
func GiveKeys(c *manifest.Cluster) steps.Step {
	return op.Ensure("etcd.give-client-keys", clientResources(c))
}

// TakeKeys is its inverse.
func TakeKeys(c *manifest.Cluster) steps.Step {
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
		rs = append(rs, op.Text(clientCA, fileHere(e.CAFile)))
	}
	if e.CertFile != "" {
		rs = append(rs, op.Text(clientCert, fileHere(e.CertFile)),
			op.File{Path: clientKey, Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: fileHere(e.KeyFile)})
	}
	return rs
}

// fileHere is a file of the machine that kubexm runs on.
func fileHere(path string) func(context.Context, *steps.Host) ([]byte, error) {
	return func(context.Context, *steps.Host) ([]byte, error) { return os.ReadFile(path) }
}

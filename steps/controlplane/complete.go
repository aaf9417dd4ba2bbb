package controlplane

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/runner"
)

// CompleteFile marks a complete master: the result of kubeadm's last phase was observed once.
// Without the mark, an interrupted init or join, which must be reset, could not be told from
// a control plane whose API server does not answer for a moment.
const CompleteFile = "/etc/kubernetes/kubexm-complete"

// ResetFile marks a host that is being reset. kubeadm reset removes all files by which a node
// is recognized, but other files remain to be removed.
const ResetFile = "/etc/kubernetes/kubexm-going"

// Complete reports whether h is marked as a complete master. It makes no request to an API
// server.
func Complete(ctx context.Context, h *steps.Host) (bool, error) {
	if marked, err := h.Exists(ctx, CompleteFile); err != nil || !marked {
		return false, err
	}
	return Started(ctx, h) // false if the host was reset outside of kubexm since
}

// MarkComplete marks a master as complete, after it has synced kubeadm's files to disk.
// kubeadm itself syncs nothing: after a loss of power the host would have the mark and empty
// keys.
func MarkComplete(ctx context.Context, h *steps.Host) error {
	if err := Sync(ctx, h); err != nil {
		return err
	}
	return h.WriteFile(ctx, CompleteFile, []byte("made by kubeadm, whole\n"), runner.Attr{Mode: 0o600})
}

// Running reports whether the control plane answers: it reads the objects of kubeadm init's
// last phases from the API server.
func Running(ctx context.Context, h *steps.Host) (bool, error) {
	if ok, err := Written(ctx, h, kubectl.AdminConf); err != nil || !ok {
		return false, err
	}
	out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "-n", "kube-system", "get", "daemonset/kube-proxy", "configmap/kubeadm-config", "-o", "name")
	if runner.Refused(err) {
		return false, nil
	}
	return err == nil && strings.Contains(out, "kube-proxy"), err
}

// APIServerReady reports whether the API server on h itself is ready, which includes access to
// etcd. Then h can be used to reach the cluster, wherever the endpoint's name points.
func APIServerReady(ctx context.Context, h *steps.Host) (bool, error) {
	if ok, err := Written(ctx, h, kubectl.AdminConf); err != nil || !ok {
		return false, err
	}
	own := "https://" + net.JoinHostPort(h.Cluster.NodeAddresses(h.Host)[0], strconv.Itoa(h.Cluster.APIServerPort()))
	out, err := kubectl.Run(ctx, h, "--request-timeout=5s", "--server="+own, "get", "--raw", "/readyz")
	var cmd *runner.CmdError
	if errors.As(err, &cmd) {
		return false, nil
	}
	return err == nil && strings.TrimSpace(out) == "ok", err
}

// Bootable reports whether the files exist that a control plane starts from.
func Bootable(ctx context.Context, h *steps.Host) (bool, error) {
	return Written(ctx, h, "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/kubelet.conf", kubectl.AdminConf)
}

// Written reports whether all files exist and are not empty: files that were not synced are
// empty after a loss of power.
func Written(ctx context.Context, h *steps.Host, paths ...string) (bool, error) {
	for _, p := range paths {
		i, err := h.Stat(ctx, p)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil || i.Size == 0 {
			return false, err
		}
	}
	return true, nil
}

// Sync writes the files of kubeadm and the kubelet to the host's disk.
func Sync(ctx context.Context, h *steps.Host) error {
	_, err := h.Run(ctx, runner.Cmd{Argv: []string{"sync", "-f", "/etc/kubernetes", "/var/lib/kubelet"}, Timeout: 2 * time.Minute})
	return err
}

// traces are files that init and join create, from the first to the last. The very first is
// the CA's key: kubeadm fails on every further run if the key exists without a certificate.
var traces = []string{
	"/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/kubelet.conf", PKIDir + "/ca.crt", PKIDir + "/ca.key", kubectl.AdminConf,
}

// Started reports whether kubeadm init or join has created any file.
func Started(ctx context.Context, h *steps.Host) (bool, error) {
	for _, p := range traces {
		if exists, err := h.Exists(ctx, p); err != nil || exists {
			return exists, err
		}
	}
	return false, nil
}

// HasMarkers reports whether a host has any file by which Complete, Started or a reset decides.
func HasMarkers(ctx context.Context, h *steps.Host) (bool, error) {
	for _, p := range append(slices.Clone(traces), manifest.EncryptionConfig, CompleteFile, ResetFile) {
		if exists, err := h.Exists(ctx, p); err != nil || exists {
			return exists, err
		}
	}
	return false, nil
}

// CA returns the CA certificate of the cluster that h is a node of; nil if h is not a node,
// or if kubexm is removing Kubernetes from it.
func CA(ctx context.Context, h *steps.Host) ([]byte, error) {
	_, err := h.Stat(ctx, ResetFile)
	switch {
	case err == nil:
		return nil, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	text, err := h.ReadFile(ctx, PKIDir+"/ca.crt")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

package controlplane

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/runner"
)

// CompleteFile says that this master was made whole: the last phase of that was seen
// once. Without it nobody could tell a control plane that was cut off half way
// from one whose API server is away for a moment, and the first has to be reset.
const CompleteFile = "/etc/kubernetes/kubexm-complete"

// GoingFile says that a host is being cleaned. kubeadm's own reset takes every
// trace away by which a node is known, and what it leaves is still to go then.
const GoingFile = "/etc/kubernetes/kubexm-going"

// Complete tells whether h was made a master, and that ended well. It asks no API
// server.
func Complete(ctx context.Context, h *steps.Host) (bool, error) {
	if marked, err := h.Exists(ctx, CompleteFile); err != nil || !marked {
		return false, err
	}
	return Begun(ctx, h) // else somebody has reset it since
}

// MarkComplete says that a master is complete, once what kubeadm wrote is on disk: it
// syncs nothing, and a host that loses its power would come up with the mark and with
// empty keys.
func MarkComplete(ctx context.Context, h *steps.Host) error {
	if err := Sync(ctx, h); err != nil {
		return err
	}
	return h.WriteFile(ctx, CompleteFile, []byte("made by kubeadm, whole\n"), runner.Attr{Mode: 0o600})
}

// Running tells whether the control plane answers: it looks for what the last phases
// of kubeadm init leave behind, and asks the API server itself.
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

// Bootable tells whether all is there that a control plane starts from.
func Bootable(ctx context.Context, h *steps.Host) (bool, error) {
	return Written(ctx, h, "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/kubelet.conf", kubectl.AdminConf)
}

// Written tells whether files are there with something in them: what nobody synced
// is empty after a loss of power.
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

// Sync has the host's disk take what kubeadm and the kubelet wrote.
func Sync(ctx context.Context, h *steps.Host) error {
	_, err := h.Run(ctx, runner.Cmd{Argv: []string{"sync", "-f", "/etc/kubernetes", "/var/lib/kubelet"}, Timeout: 2 * time.Minute})
	return err
}

// traces are what init and join leave behind, the earliest and the latest of it.
// The very first is the key of the CA: one without a certificate stops kubeadm for
// ever.
var traces = []string{
	"/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/kubelet.conf", PKIDir + "/ca.crt", PKIDir + "/ca.key", kubectl.AdminConf,
}

// Begun tells whether kubeadm init or join left something behind.
func Begun(ctx context.Context, h *steps.Host) (bool, error) {
	for _, p := range traces {
		if exists, err := h.Exists(ctx, p); err != nil || exists {
			return exists, err
		}
	}
	return false, nil
}

// Left tells whether a host has anything that Complete, Begun or a reset goes by.
func Left(ctx context.Context, h *steps.Host) (bool, error) {
	for _, p := range append(slices.Clone(traces), manifest.EncryptionConfig, CompleteFile, GoingFile) {
		if exists, err := h.Exists(ctx, p); err != nil || exists {
			return exists, err
		}
	}
	return false, nil
}

// CA gives the certificate of the cluster that h is a node of; nil where it is none,
// and where kubexm is taking Kubernetes off the host.
func CA(ctx context.Context, h *steps.Host) ([]byte, error) {
	_, err := h.Stat(ctx, GoingFile)
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

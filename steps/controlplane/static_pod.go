package controlplane

import (
	"context"
	"errors"
	"path"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// SuperAdminConf is the kubeconfig with which kubeadm init makes the administrator one, from
// Kubernetes 1.29 on. It exists on the first master only.
const SuperAdminConf = "/etc/kubernetes/super-admin.conf"

// StaticPod is a static pod that a control plane needs while it starts.
type StaticPod struct {
	Path  string // of the manifest
	Needs []manifest.Need
	Body  func(context.Context, *steps.Host) ([]byte, error)
	// Again is the manifest on a complete master that lacks it.
	Again func(context.Context, *steps.Host) ([]byte, error)
	Gone  op.Fn // removes what the pod leaves on the host
}

// WriteStaticPods writes the manifests of pods. kubeadm accepts further manifests in their
// folder: its checks name the files of its own (InitNodeChecks of cmd/kubeadm/app/preflight).
func WriteStaticPods(ctx context.Context, h *steps.Host, pods []StaticPod) error {
	for _, p := range pods {
		if err := p.write(ctx, h, p.Body); err != nil {
			return err
		}
	}
	return nil
}

// RestoreStaticPods writes the manifests that a complete master lacks. It does nothing on other
// hosts.
func RestoreStaticPods(ctx context.Context, h *steps.Host, pods []StaticPod) error {
	for _, p := range pods {
		if complete, err := Complete(ctx, h); err != nil || !complete {
			return err
		}
		exists, err := h.Exists(ctx, p.Path)
		if err == nil && !exists {
			err = p.write(ctx, h, p.Again)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p StaticPod) write(ctx context.Context, h *steps.Host, body func(context.Context, *steps.Host) ([]byte, error)) error {
	text, err := body(ctx, h)
	if err != nil {
		return err
	}
	if _, err := h.Mkdir(ctx, path.Dir(p.Path), runner.Attr{Mode: 0o700}); err != nil {
		return err
	}
	return h.WriteFile(ctx, p.Path, text, runner.Attr{Mode: 0o600})
}

// RemoveStaticPods removes the manifests of pods, and what the pods leave behind.
func RemoveStaticPods(ctx context.Context, h *steps.Host, pods []StaticPod) error {
	var errs []error
	for _, p := range pods {
		err := h.Remove(ctx, p.Path)
		if err == nil {
			err = p.Gone(ctx, h)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

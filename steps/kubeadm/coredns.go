package kubeadm

import (
	"context"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/kubectl"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// withoutCoreDNS leaves the phase of InstallCoreDNS out of kubeadm init.
const withoutCoreDNS = "--skip-phases=addon/coredns"

// InstallCoreDNS installs CoreDNS with kubeadm's own phase, on the master on which kubeadm init
// has run. It runs once the pod network is up on all nodes. kubeadm init would do it when the
// first master is the only node, and all replicas would stay there: the scheduler moves no pod
// later. Their first start would fail while the network plugin starts, and the kubelet then waits
// 10 seconds and more (backOffPeriod, kubernetes/pkg/kubelet/kubelet.go). An existing Deployment
// stays as it is.
func InstallCoreDNS() steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.install-coredns", Needs: images("coredns"), Timeout: 2 * time.Minute, Retry: steps.Retry{Times: 5, Wait: 3 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			out, err := kubectl.Run(ctx, h, "--request-timeout=10s", "-n", "kube-system", "get", "deployment/coredns", "--ignore-not-found", "-o", "name")
			if runner.Refused(err) {
				return false, nil
			}
			return err == nil && strings.TrimSpace(out) != "", err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			_, err := h.Exec(ctx, "kubeadm", "init", "phase", "addon", "coredns", "--config", configFile)
			return err
		},
	}
}

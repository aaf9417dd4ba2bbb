package kubeadm

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// store returns the data folder of the etcd that kubeadm runs. kubeadm reset empties the
// folder and does not remove it; the host's record reports whether it existed before.
func store(h *steps.Host) op.Dir {
	return op.Dir{Path: h.Cluster.Spec.Etcd.DataDir, Attr: runner.Attr{Mode: 0o700}, Own: true}
}

// makeStore creates the folder, if kubeadm runs etcd.
func makeStore(ctx context.Context, h *steps.Host) error {
	if !stacked(h.Cluster) {
		return nil
	}
	c, err := store(h).Want(ctx, h, false)
	if err != nil || c == nil {
		return err
	}
	return c.Apply(ctx, h)
}

// removeStore removes the folder if kubexm created it for kubeadm. A member of an etcd that
// kubeadm does not run may use a folder of the same name.
func removeStore(ctx context.Context, h *steps.Host) error {
	if !stacked(h.Cluster) {
		return nil
	}
	c, err := store(h).Gone(ctx, h)
	if err != nil || c == nil {
		return err
	}
	return c.Apply(ctx, h)
}

// storeRecorded reports whether kubexm created the folder, by the host's record.
func storeRecorded(ctx context.Context, h *steps.Host) (bool, error) {
	if !stacked(h.Cluster) {
		return false, nil
	}
	return op.Recorded(ctx, h, store(h))
}

package kubeadm

import (
	"context"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// store is the folder of the etcd that kubeadm runs. kubeadm's reset empties it
// and leaves it: whether it was there before is on record.
func store(h *steps.Host) op.Dir {
	return op.Dir{Path: h.Cluster.Spec.Etcd.DataDir, Attr: runner.Attr{Mode: 0o700}, Own: true}
}

// makeStore makes it, where kubeadm runs the store.
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

// removeStore takes the folder away where kubexm made it for kubeadm. Another
// member of the store may have one of the same name, and needs it still.
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

// storeKept tells whether a folder that kubexm made for kubeadm's store is there.
func storeKept(ctx context.Context, h *steps.Host) (bool, error) {
	if !stacked(h.Cluster) {
		return false, nil
	}
	return op.Recorded(ctx, h, store(h))
}

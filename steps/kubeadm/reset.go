package kubeadm

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/controlplane"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// reset runs kubeadm reset on a node. It skips the phase remove-etcd-member if kubeadm runs
// no etcd member on the node: from 1.31 on that phase empties /var/lib/etcd if it finds no
// member. It also skips the phase if keep is set, because it would delete the preserved
// data.
func reset(ctx context.Context, h *steps.Host, keep bool) error {
	argv := []string{"kubeadm", "reset", "--force", "--cri-socket", part.RuntimeOf(h.Cluster).Socket}
	if keep || !stacked(h.Cluster) || !h.Cluster.Spec.RoleGroups.Has(manifest.RoleMaster, h.Name) {
		argv = append(argv, "--skip-phases=remove-etcd-member")
	}
	if part.NetworkOf(h.Cluster).NeedsAgent {
		if err := controlplane.WithoutNetwork(ctx, h); err != nil {
			return err
		}
	}
	_, err := h.Run(ctx, runner.Cmd{Argv: argv, Timeout: 8 * time.Minute}) // without a quorum each etcd request runs into its timeout
	return err
}

// resetHalf resets an incomplete init or join. It preserves etcd data of an earlier
// deletion, which this run has not created.
func resetHalf(ctx context.Context, h *steps.Host) error {
	k, err := readPreserved(ctx, h)
	if err != nil {
		return err
	}
	return reset(ctx, h, k != nil)
}

// ResetWorker removes Kubernetes from a worker with kubeadm reset, and cleans up what that
// leaves behind.
func ResetWorker() steps.Step { return resetNode("kubeadm.reset-worker", false) }

// ResetMaster removes Kubernetes from a master with kubeadm reset, including its etcd member,
// and cleans up what that leaves behind.
func ResetMaster() steps.Step { return resetNode("kubeadm.reset-master", false) }

// ResetMasterPreservingStore is ResetMaster, but preserves the etcd member's data if
// PreserveKeys has saved the keys for it.
func ResetMasterPreservingStore() steps.Step { return resetNode("kubeadm.reset-master", true) }

func resetNode(name string, keep bool) steps.Step {
	// A control plane that was never complete has left no keys, and its data is unusable.
	staying := func(ctx context.Context, h *steps.Host) (bool, error) {
		if !keep {
			return false, nil
		}
		k, err := readPreserved(ctx, h)
		return k != nil, err
	}
	return &op.Do{
		M: steps.Meta{Name: name, Timeout: 10 * time.Minute, Risk: steps.Destroys},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			if is, err := controlplane.HasMarkers(ctx, h); err != nil || is {
				return false, err
			}
			stays, err := staying(ctx, h)
			if err != nil || stays {
				return err == nil, err
			}
			recorded, err := storeRecorded(ctx, h) // the folder remains after a deletion that preserved it
			return err == nil && !recorded, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			is, err := controlplane.HasMarkers(ctx, h)
			if err != nil {
				return err
			}
			stays, err := staying(ctx, h)
			if err != nil {
				return err
			}
			if is {
				if err := markReset(ctx, h); err != nil {
					return err
				}
				if err := reset(ctx, h, stays); err != nil {
					return err
				}
			}
			if !stays {
				if err := removeStore(ctx, h); err != nil { // a worker has none on record
					return err
				}
			}
			return controlplane.CleanUp(ctx, h, initJob, joinJob)
		},
	}
}

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

// reset takes back what init or join did to a node. Where kubeadm runs no member
// of the store on it, its phase for that is passed over: what it finds no member
// in, it takes for a member's remains, and empties /var/lib/etcd (1.31 and newer).
// The same phase would empty a store that is to be kept.
func reset(ctx context.Context, h *steps.Host, keep bool) error {
	argv := []string{"kubeadm", "reset", "--force", "--cri-socket", part.RuntimeOf(h.Cluster).Socket}
	if keep || !stacked(h.Cluster) || !h.Cluster.Spec.RoleGroups.Has(manifest.RoleMaster, h.Name) {
		argv = append(argv, "--skip-phases=remove-etcd-member")
	}
	_, err := h.Run(ctx, runner.Cmd{Argv: argv, Timeout: 8 * time.Minute}) // where most members are dead it waits for each answer in vain
	return err
}

// resetHalf resets what was left half way. A store that an earlier deletion
// preserved is not what this run brought.
func resetHalf(ctx context.Context, h *steps.Host) error {
	k, err := readKept(ctx, h)
	if err != nil {
		return err
	}
	return reset(ctx, h, k != nil)
}

// ResetWorker takes Kubernetes off a worker: kubeadm's own reset, then what it
// leaves behind.
func ResetWorker() steps.Step { return resetNode("kubeadm.reset-worker", false) }

// ResetMaster does the same to a master, with its member of the store.
func ResetMaster() steps.Step { return resetNode("kubeadm.reset-master", false) }

// ResetMasterKeepingStore leaves the member's data where it is, if KeepKeys has found
// that it is of use.
func ResetMasterKeepingStore() steps.Step { return resetNode("kubeadm.reset-master", true) }

func resetNode(name string, keep bool) steps.Step {
	// What was never whole has left no keys, and its store is of no use.
	staying := func(ctx context.Context, h *steps.Host) (bool, error) {
		if !keep {
			return false, nil
		}
		k, err := readKept(ctx, h)
		return k != nil, err
	}
	return &op.Do{
		M: steps.Meta{Name: name, Timeout: 10 * time.Minute, Risk: steps.Destroys},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			if is, err := controlplane.Left(ctx, h); err != nil || is {
				return false, err
			}
			stays, err := staying(ctx, h)
			if err != nil || stays {
				return err == nil, err
			}
			kept, err := storeKept(ctx, h) // by a deletion that preserved it
			return err == nil && !kept, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			is, err := controlplane.Left(ctx, h)
			if err != nil {
				return err
			}
			stays, err := staying(ctx, h)
			if err != nil {
				return err
			}
			if is {
				if _, err := h.Mkdir(ctx, "/etc/kubernetes", runner.Attr{}); err != nil {
					return err
				}
				if err := h.WriteFile(ctx, controlplane.GoingFile, []byte("kubexm takes Kubernetes off this host\n"), runner.Attr{Mode: 0o600}); err != nil {
					return err
				}
				if err := reset(ctx, h, stays); err != nil {
					return err
				}
			}
			if !stays {
				if err := removeStore(ctx, h); err != nil { // on a worker nothing is on record
					return err
				}
			}
			return controlplane.CleanUp(ctx, h, initJob, joinJob)
		},
	}
}

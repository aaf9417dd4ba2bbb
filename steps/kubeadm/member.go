package kubeadm

import (
	"context"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/etcd"
	"github.com/mensylisir/kubexm/steps/op"
)

// ClearMember removes, through the first healthy master, the etcd member with the address
// of a master that still has to join. It was added and never started, or its host was
// reinstalled. Such a member counts for the quorum and never votes.
func ClearMember(c *manifest.Cluster, joining manifest.Host) steps.Step {
	url, store := etcd.PeerURL(c, joining), localMember()
	dead := func(ctx context.Context, h *steps.Host) ([]etcd.Member, error) {
		vacant, err := NotJoined.On(joining.Name).Get(h)
		if err != nil || !vacant {
			return nil, err
		}
		all, err := store.Members(ctx, h)
		return slices.DeleteFunc(all, func(m etcd.Member) bool { return !slices.Contains(m.PeerURLs, url) }), err
	}
	return &op.Do{
		M: steps.Meta{Name: "kubeadm.clear-member", Reads: []steps.AnyKey{NotJoined}, Timeout: 2 * time.Minute, Risk: steps.Disruptive,
			Retry: steps.Retry{Times: 3, Wait: 5 * time.Second}},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			all, err := dead(ctx, h)
			return err == nil && len(all) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			all, err := dead(ctx, h)
			if err != nil {
				return err
			}
			for _, m := range all {
				h.Log.InfoContext(ctx, "remove a dead etcd member", "member", m.Name, "url", url)
				if err := store.Remove(ctx, h, m); err != nil {
					return steps.Advise(err, "etcd needs a quorum: run crictl ps -a --name etcd on the other masters")
				}
			}
			return nil
		},
	}
}

// localMember returns a client of the etcd member that kubeadm runs on a master.
func localMember() etcd.Client { return etcd.InContainer(etcd.StackedKeys) }
